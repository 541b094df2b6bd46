# SPDX-License-Identifier: Apache-2.0
"""OpenAI's client for Node, unchanged: the checks are in openai_node.mjs, each a line of its output."""

import os
import subprocess

from weir_server import MODEL, ServerTest


class OpenAiNode(ServerTest):
    def test_the_client_for_node(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "openai_node.mjs")
        done = subprocess.run(["node", script, self.server.url, MODEL, os.environ["WEIR_CLIENT_NODE"]], capture_output=True, text=True,
                              timeout=300)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertEqual(done.stdout.split(), ["models", "chat", "stream", "stream-helper", "tools", "responses", "abort", "errors"])
