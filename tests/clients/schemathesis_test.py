# SPDX-License-Identifier: Apache-2.0
"""schemathesis on /openapi.json: requests made from the document, and near misses of them, never give a 5xx or what the document does not say."""

import os
import subprocess
import sys

from weir_server import ServerTest

EXAMPLES = os.environ.get("WEIR_SCHEMATHESIS_EXAMPLES", "20")
CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,response_schema_conformance"


class Schemathesis(ServerTest):
    def test_the_document_is_true(self):
        done = subprocess.run(
            [sys.executable, "-m", "schemathesis.cli", "run", self.server.url + "/openapi.json", "--max-examples", EXAMPLES, "--seed", "1",
             "--checks", CHECKS, "--exclude-path-regex", "/(load|unload)", "--request-timeout", "60", "--no-color",
             "--suppress-health-check", "all"],
            capture_output=True, text=True, timeout=1200, cwd="/tmp")
        self.assertEqual(done.returncode, 0, done.stdout[-6000:] + done.stderr[-2000:])
