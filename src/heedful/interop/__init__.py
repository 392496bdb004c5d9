"""Other tools' formats: CTranslate2, Argos Translate, Hugging Face's Marian."""
