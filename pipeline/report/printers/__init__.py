"""A printer of tables and figures for every medium: terminal, plain text, HTML, Markdown, LaTeX, SVG."""
