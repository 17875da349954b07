"""The sections of the report's page, one file each."""
