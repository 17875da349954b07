"""HTTP beneath both transports: one client behaviour, bodies with bounds, failures with causes."""
