# SPDX-License-Identifier: Apache-2.0
"""schemathesis on /openapi.json: requests made from the document, and near misses of them, never give a 5xx or what the document does not say."""

import os
import subprocess
import sys
import unittest

from weir_server import EMBEDDER, MINILM, MODEL, SMOLLM2, Server

EXAMPLES = os.environ.get("WEIR_SCHEMATHESIS_EXAMPLES", "5")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"


class Schemathesis(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not SMOLLM2.exists():
            raise unittest.SkipTest(f"{SMOLLM2.name} is not here: run tools/fetch_test_data.py")
        models = [f"{MODEL}={SMOLLM2}"] + ([f"{EMBEDDER}={MINILM}"] if MINILM.exists() else [])
        cls.server = Server(*models, "--context", "128")  # most requests name no limit of their answer
        cls.addClassCleanup(cls.server.stop)

    def test_the_document_is_true(self):
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", self.server.url + "/openapi.json", "--max-examples", EXAMPLES, "--seed", "1",
             "--checks", CHECKS, "--exclude-path-regex", "/(load|unload)", "--request-timeout", "60", "--no-color",
             "--suppress-health-check", "all"],
            capture_output=True, text=True, timeout=1200, cwd="/tmp")
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
