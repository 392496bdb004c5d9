"""Print what LibreTranslate makes of translations before it returns them, as JSON.

libretranslate_formatting.py PAIRS.json, a list of [source, translation]
"""

import html
import json
import sys
from pathlib import Path

from libretranslate.language import improve_translation_formatting

pairs = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
print(json.dumps([html.unescape(improve_translation_formatting(*pair)) for pair in pairs]))
