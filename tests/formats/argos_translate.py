"""Install Argos packages and translate with them, in their own environment; print JSON.

argos_translate.py LINES.json PACKAGE.argosmodel…
"""

import json
import sys
from pathlib import Path

from argostranslate import package, translate

for path in sys.argv[2:]:
    package.install_from_path(Path(path))
lines = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
print(json.dumps([translate.translate(line, "en", "de") for line in lines]))
