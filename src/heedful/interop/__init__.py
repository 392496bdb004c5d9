"""Exporters and importers: CTranslate2, Argos Translate, Marian (Hugging Face)."""
