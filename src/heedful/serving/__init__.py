"""Models over HTTP: the API of LibreTranslate, and a page to translate with."""
