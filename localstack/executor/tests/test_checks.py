import email
import pathlib
import socketserver
import tempfile
import threading
import unittest

from process_executor import mail, refusals, versions


class VersionsTest(unittest.TestCase):
    def test_right_ones(self):
        self.assertIsNone(versions.complaint((3, 11), "4.9.2"))

    def test_wrong_ones_are_named_with_what_is_right(self):
        for python, localstack, parts in (
            ((3, 13), "4.9.2", ("3.13", "3.11")),
            ((3, 11), "4.10.0", ("4.10.0", "4.9.2")),
            ((3, 11), None, ("not installed", "4.9.2")),
        ):
            said = versions.complaint(python, localstack)
            for part in (*parts, "localstack-venv"):
                self.assertIn(part, said)


class RefusalsTest(unittest.TestCase):
    def test_configurations(self):
        refusals.check_configuration("Zip", "provided.al2023", 0)
        refusals.check_configuration(None, "provided.al2", 0)
        for package, runtime, layers, part in (
            ("Image", None, 0, "container image"), ("Zip", "python3.12", 0, "python3.12"), ("Zip", None, 0, "None"), ("Zip", "provided.al2023", 2, "2 layer"),
        ):
            with self.assertRaisesRegex(refusals.Refused, part):
                refusals.check_configuration(package, runtime, layers)

    def test_code(self):
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        with self.assertRaisesRegex(refusals.Refused, "bootstrap"):
            refusals.check_code(folder)
        (folder / "bootstrap").write_text("x")
        (folder / "bootstrap").chmod(0o644)
        refusals.check_code(folder)
        self.assertTrue((folder / "bootstrap").stat().st_mode & 0o100, "the right to execute is not restored")
        (folder / "extensions").mkdir()
        with self.assertRaisesRegex(refusals.Refused, "extensions"):
            refusals.check_code(folder)


MESSAGE = (
    "From: Reports <reports@example.com>\r\nTo: Ann <ann@example.com>, bob@example.com\r\nCc: cy@example.org\r\nSubject: =?utf-8?q?M=C3=A4rz?=\r\n"
    'MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b"\r\n\r\n--b\r\nContent-Type: text/plain; charset=utf-8\r\n\r\nGrüße\r\n.\r\n'
    '--b\r\nContent-Type: text/csv\r\nContent-Disposition: attachment; filename="a.csv"\r\nContent-Transfer-Encoding: base64\r\n\r\nYSxiDQoxLDINCg==\r\n--b--\r\n'
)


class SMTPServer(socketserver.ThreadingTCPServer):
    """Takes mail, but for one recipient, and keeps it."""

    allow_reuse_address = daemon_threads = True

    def __init__(self):
        self.mails = []
        super().__init__(("127.0.0.1", 0), _SMTP)


class _SMTP(socketserver.StreamRequestHandler):
    def handle(self):
        self.say("220 test")
        recipients, sender = [], ""
        while line := self.rfile.readline():
            verb = line.strip().upper()
            if verb.startswith((b"EHLO", b"HELO")):
                self.say("250 test")
            elif verb.startswith(b"MAIL"):
                sender = line.decode().strip()
                self.say("250 ok")
            elif verb.startswith(b"RCPT"):
                refused = b"refused@" in line
                if not refused:
                    recipients.append(line.decode().split("<")[1].split(">")[0])
                self.say("550 no such user" if refused else "250 ok")
            elif verb == b"DATA":
                self.say("354 go on")
                lines = []
                while (line := self.rfile.readline()) != b".\r\n":
                    lines.append(line[1:] if line.startswith(b"..") else line)
                self.server.mails.append((sender, recipients, b"".join(lines)))
                self.say("250 taken")
            elif verb == b"QUIT":
                self.say("221 bye")
                return
            else:
                self.say("250 ok")

    def say(self, text):
        self.wfile.write(text.encode() + b"\r\n")


class MailTest(unittest.TestCase):
    def setUp(self):
        self.server = SMTPServer()
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]

    def test_recipients_of_the_call_come_before_those_of_the_headers(self):
        self.assertEqual(mail.recipients_of(["Dee <dee@example.com>"], MESSAGE), ["dee@example.com"])
        self.assertEqual(mail.recipients_of([], MESSAGE), ["ann@example.com", "bob@example.com", "cy@example.org"])

    def test_a_message_arrives_whole(self):
        mail.relay(self.address, "Reports <reports@example.com>", ["ann@example.com"], MESSAGE)
        (sender, recipients, content), = self.server.mails
        self.assertIn("<reports@example.com>", sender)
        self.assertEqual(recipients, ["ann@example.com"])
        self.assertEqual(content, MESSAGE.encode())
        attachment = list(email.message_from_bytes(content).walk())[-1]
        self.assertEqual((attachment.get_filename(), attachment.get_payload(decode=True)), ("a.csv", b"a,b\r\n1,2\r\n"))

    def test_a_recipient_that_is_refused_stands_in_the_log_alone(self):
        for recipients in (["refused@example.com", "ann@example.com"], ["refused@example.com"]):
            with self.assertLogs("process_executor.mail", "WARNING") as logs:
                mail.relay(self.address, "reports@example.com", recipients, MESSAGE)
            self.assertIn("refused@example.com", logs.output[0])
            self.assertIn("no such user", logs.output[0])
        self.assertEqual([m[1] for m in self.server.mails], [["ann@example.com"]])

    def test_no_server(self):
        with self.assertLogs("process_executor.mail", "WARNING"):
            mail.relay("127.0.0.1:1", "reports@example.com", ["ann@example.com"], MESSAGE)

    def test_a_message_that_is_too_large(self):
        self.assertIsNone(mail.too_large("x" * mail.LARGEST_MESSAGE))
        self.assertIn(str(mail.LARGEST_MESSAGE + 2), mail.too_large("x" * mail.LARGEST_MESSAGE + "ü"))

    def test_unverified(self):
        verified = {"ann@example.com"}.__contains__
        self.assertEqual(mail.unverified(["ann@example.com", "gone@example.org"], verified), ["gone@example.org"])


class EntryPointsTest(unittest.TestCase):
    def test_each_names_something_of_the_plugin(self):
        here = pathlib.Path(__file__).parent.parent
        points = (here / "process_executor-1.0.dist-info" / "entry_points.txt").read_text()
        source = (here / "process_executor" / "plugin.py").read_text()
        named = [line.split("process_executor.plugin:")[1] for line in points.splitlines() if "=" in line]
        self.assertEqual(len(named), 4)
        for name in named:
            self.assertRegex(source, rf"(?m)^(class|def) {name}\b")

    def test_the_version_is_the_one_that_is_locked(self):
        lock = (pathlib.Path(__file__).parent.parent.parent / "requirements-localstack.txt").read_text()
        self.assertIn(f"\nlocalstack-core=={versions.LOCALSTACK} ", lock)


if __name__ == "__main__":
    unittest.main()
