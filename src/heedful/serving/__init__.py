"""HTTP server: a LibreTranslate-compatible API and a web app."""
