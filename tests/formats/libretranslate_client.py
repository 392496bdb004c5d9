"""Query a server with the client of LibreTranslate, in its own environment; print JSON.

libretranslate_client.py ADDRESS SENTENCE…
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
