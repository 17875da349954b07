"""Every shape of table: wide, long by judge, nested, mapped values, workbooks, several files, standard input."""
