"""Run by the Python of LibreTranslate's environment: its own client asks a server, and prints JSON.

client.py ADDRESS SENTENCE…
"""

import json
import sys

from libretranslatepy import LibreTranslateAPI

client = LibreTranslateAPI(sys.argv[1] + "/")
answers = {
    "translated": [client.translate(sentence, "en", "de") for sentence in sys.argv[2:]],
    "detected": client.detect(sys.argv[2]),
    "languages": client.languages(),
}
print(json.dumps(answers))
