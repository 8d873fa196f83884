"""Pages: the site, from the project's own data; `python docs/make.py -o DIR` writes it."""
