"""Runs a command in its own terminal: terminal.py WIDTH HEIGHT COMMAND...

Standard input is typed there; NUL and WIDTHxHEIGHT give it another size. Whenever the screen changes, all of it is printed in ASCII, after a form feed; first
the command's process, as `pid N`. At the end, whether colours were used and whether the terminal was restored; the exit status is the command's.
"""
import codecs, fcntl, os, pty, re, select, struct, sys, termios

WIDTH, HEIGHT = int(sys.argv[1]), int(sys.argv[2])
# A sequence that moves, clears or paints; or a character.
PIECE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b.|([\s\S])")


class Screen:
    def __init__(self):
        self.main, self.other, self.colours = [], None, False
        self.clear()

    def clear(self):
        self.rows, self.x, self.y = [[" "] * WIDTH for _ in range(HEIGHT)], 0, 0

    def take(self, text):
        for numbers, order, character in PIECE.findall(text):
            if order == "H":
                y, x = (numbers or "1;1").split(";")
                self.x, self.y = int(x) - 1, int(y) - 1
            elif order == "J":
                self.clear()
            elif order in "hl" and numbers == "?1049":
                self.other = order == "h" or None
                self.clear()
            elif order == "m":
                self.colours |= bool(re.search(r"(^|;)([34][0-7]|[349]8|9[0-7])(;|$)", numbers))
            elif character and self.other and self.x < WIDTH and self.y < HEIGHT:
                self.rows[self.y][self.x] = character
                self.x += 1
            elif character and not self.other:
                self.main.append(character)

    def text(self):
        view = "\n".join("".join(row).rstrip() for row in self.rows)
        return view if self.other else "".join(self.main).replace("\r", "")


def show(text):
    sys.stdout.buffer.write(b"\f" + text.encode("ascii", "replace"))
    sys.stdout.flush()


leader, follower = pty.openpty()
fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
before = termios.tcgetattr(follower)
child = os.fork()
if child == 0:
    os.setsid()
    fcntl.ioctl(follower, termios.TIOCSCTTY, 0)
    for stream in range(3):
        os.dup2(follower, stream)
    os.execvp(sys.argv[3], sys.argv[3:])
show(f"pid {child}")
screen, decoder, typing, status = Screen(), codecs.getincrementaldecoder("utf-8")(), [0], None
while True:
    ready, _, _ = select.select([leader, *typing], [], [], 0 if status is not None else 0.05)
    if 0 in ready:
        keys = os.read(0, 64)
        typing = [0] if keys else []
        size = re.fullmatch(rb"\0(\d+)x(\d+)", keys)
        if size:
            WIDTH, HEIGHT = int(size[1]), int(size[2])
            # The kernel signals it to the foreground process group.
            fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
            screen.clear()
        else:
            os.write(leader, keys)
    if leader in ready:
        screen.take(decoder.decode(os.read(leader, 65536)))
        show(screen.text())
    elif status is not None:
        break
    else:
        ended, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if ended else None
is_restored = termios.tcgetattr(follower) == before and not screen.other
show(screen.text() + ("\nwith colours" if screen.colours else "\nwithout colours") + ("\nrestored\n" if is_restored else "\nnot restored\n"))
sys.exit(status if status >= 0 else 128 - status)
