"""Servers as they are installed, with the settings that limit them."""

from recording import healthy, limited, scenario

PACED = ("--think", "300ms..700ms", "--timeout", "3s")
IDLE = ("--think", "1m", "--timeout", "3s")
MODULES = "/usr/lib/apache2/modules"


def nginx(rig, http="", server="", location="return 200 ok;", main="", events="worker_connections 1024;", listen="backlog=4096", **start):
    """One worker, one site."""
    rig.needs("nginx")
    rig.folder.chmod(0o755)
    text = f"""daemon off; worker_processes 1; pid {rig.folder}/nginx.pid; error_log stderr warn; {main}
events {{ {events} }}
http {{ access_log off; {http}
  server {{ listen {rig.port} {listen}; {server} location / {{ {location} }} }} }}
"""
    return rig.start("nginx", "-p", rig.folder, "-c", rig.write("nginx.conf", text), **start)


def haproxy(rig, globals_="", frontend="", backend="", defaults="timeout client 30s\n timeout server 30s\n timeout connect 3s", delay=0):
    """One site before servers/odd.py at port 3001."""
    rig.needs("haproxy")
    rig.start("python3", rig.server("odd.py"), 3_001, "--delay", delay, port=3_001)
    text = f"""global
 log stderr format raw daemon warning
 {globals_}
defaults
 mode http
 log global
 {defaults}
frontend web
 bind :{rig.port}
 {frontend}
 default_backend nodes
backend nodes
 server a 127.0.0.1:3001 {backend}
"""
    return rig.start("haproxy", "-db", "-f", rig.write("haproxy.cfg", text))


def apache(rig, mpm, settings):
    """One site with a page of three bytes."""
    rig.needs("apache2")
    rig.folder.chmod(0o755)
    rig.write("index.html", "ok\n")
    loads = "".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so\n" for name in (f"mpm_{mpm}", "authz_core", "dir"))
    text = f"""ServerRoot {rig.folder}
{loads}PidFile {rig.folder}/apache.pid
ServerName localhost
User www-data
Group www-data
Listen {rig.port}
ErrorLog /proc/self/fd/2
DocumentRoot {rig.folder}
DirectoryIndex index.html
<Directory {rig.folder}>
Require all granted
</Directory>
{settings}
"""
    return rig.start("apache2", "-DFOREGROUND", "-f", rig.write("apache.conf", text))


@scenario(healthy())
def nginx_as_it_is(rig):
    """nginx, one worker, 1,024 connections; 300 come."""
    nginx(rig)
    rig.throng("run", rig.url, "-c", "300", "--ramp", "300/s", "-d", "3s", *PACED)


@scenario(limited("target", "connection-limit", says="worker_connections"))
def nginx_out_of_connections(rig):
    """worker_connections 256: it closes the longest idle ones, and logs that they are not enough."""
    nginx(rig, events="worker_connections 256;")
    rig.throng("run", rig.url, "-c", "400", "--ramp", "200/s", "-d", "2s", *IDLE)
    rig.check("worker_connections are not enough" in rig.output(), "its log says so")


@scenario(limited("target", "connection-limit", certainty="seen", at=(185, 256), detail="worker_connections are not enough",
                  fix="worker_connections", never="idle timeout"))
def nginx_out_of_connections_in_use(rig):
    """The same with requests each 1 s to 3 s: it closes those between two requests, which is no idle timeout."""
    nginx(rig, http="keepalive_timeout 1h; keepalive_requests 1000000;", events="worker_connections 256;")
    rig.throng("run", rig.url, "-c", "300", "-d", "4s", "--think", "1s..3s", "--timeout", "3s")
    rig.check("worker_connections are not enough" in rig.output(), "its log says so")


@scenario(limited("target", "closed", held=(0, 0)))
def nginx_returns_444(rig):
    """`return 444`: a close instead of a response."""
    nginx(rig, location="return 444;")
    rig.throng("run", rig.url, "-c", "10", "-d", "200ms")


@scenario(limited("target", "wrong-answer", says="504"))
def haproxy_before_a_silent_backend(rig):
    """timeout server 0.5s, and the backend takes 3 s: 504 to all."""
    haproxy(rig, defaults="timeout client 30s\n timeout server 500ms\n timeout connect 3s", delay=3)
    rig.throng("run", rig.url, "-c", "3", "-d", "700ms")


@scenario(limited("target", "accept-queue", certainty="seen", at=(180, 200), says="maxconn", never="CPU|open files"))
def haproxy_full_of_idle_ones(rig):
    """maxconn 200 of its frontend, for 260 idle connections: the others wait in the accept queue."""
    haproxy(rig, frontend="maxconn 200")
    rig.throng("run", rig.url, "-c", "260", "--ramp", "1k/s", "-d", "3s", "--think", "1m", "--timeout", "1s")


@scenario(limited("target", "accept-queue", certainty="seen", at=(180, 200), says="maxconn", never="CPU|open files"))
def haproxy_full_of_busy_ones(rig):
    """The same with requests each 50 ms; those that wait do so to the end."""
    haproxy(rig, frontend="maxconn 200")
    rig.throng("run", rig.url, "-c", "260", "--ramp", "1k/s", "-d", "1500ms", "--think", "50ms")


@scenario(limited("target", "open-files"))
def nginx_out_of_files(rig):
    """worker_rlimit_nofile 200 below worker_connections: accept4 fails with EMFILE."""
    nginx(rig, main="worker_rlimit_nofile 200;")
    rig.throng("run", rig.url, "-c", "400", "--ramp", "200/s", "-d", "2s", *IDLE)
    rig.check("Too many open files" in rig.output(), "its log says so")


@scenario(healthy())
def nginx_with_files_just_enough(rig):
    """worker_rlimit_nofile 256 for 200 connections."""
    nginx(rig, main="worker_rlimit_nofile 256;")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "2s", *PACED)
    rig.check("Too many" not in rig.output(), "files were enough")


@scenario(limited("target", "idle-cut"))
def nginx_keepalive_timeout(rig):
    """keepalive_timeout 2s, which nginx does not announce; the pauses are longer."""
    nginx(rig, http="keepalive_timeout 2s;")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "40/s", "-d", "6s", "--think", "20s..30s", "--timeout", "3s")


@scenario(healthy())
def nginx_keepalive_requests(rig):
    """keepalive_requests 5: each fifth response announces a close."""
    nginx(rig, http="keepalive_requests 5;")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "3s", "--think", "50ms..150ms", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", "connection-limit", says="503|limiting"))
def nginx_limit_req(rig):
    """limit_req of 50 requests a second of one address: the others get 503."""
    nginx(rig, http="limit_req_zone $binary_remote_addr zone=a:1m rate=50r/s;", location="limit_req zone=a burst=5 nodelay; try_files /nothing @ok;",
          server="location @ok { return 200 ok; }")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "3s", "--think", "300ms..700ms", "--timeout", "3s")
    rig.check("limiting requests" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", says="502"))
def nginx_without_its_backend(rig):
    """The backend does not listen: 502 to all."""
    nginx(rig, location="proxy_pass http://127.0.0.1:3001;")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)
    rig.check("Connection refused" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", says="504"))
def nginx_before_a_slow_backend(rig):
    """The backend takes 3 s, proxy_read_timeout is 1 s: 504 to all."""
    rig.start("python3", rig.server("odd.py"), 3_001, "--delay", 3, port=3_001)
    nginx(rig, location="proxy_pass http://127.0.0.1:3001; proxy_read_timeout 1s;")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "3s", "--timeout", "5s")
    rig.check("upstream timed out" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", says="502|50[0-9]"))
def nginx_whose_backend_dies_in_the_middle(rig):
    """The backend is killed in second 2: 502 from then on."""
    backend = rig.start("python3", rig.server("odd.py"), 3_001, port=3_001)
    nginx(rig, location="proxy_pass http://127.0.0.1:3001;")
    rig.later(2, "kill", "-KILL", backend.pid)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "4s", *PACED)
    rig.check("Connection refused" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", "tls-expected", says="https|tls|400"))
def plain_text_to_nginx_with_tls(rig):
    """`listen ssl`, and the load is http: 400, `The plain HTTP request was sent to HTTPS port`."""
    file = rig.certificate()
    nginx(rig, listen="ssl", server=f"ssl_certificate {file}; ssl_certificate_key {file};")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", *PACED)


@scenario(healthy())
def nginx_with_tls_and_http2(rig):
    """HTTP/2 over TLS."""
    file = rig.certificate()
    nginx(rig, listen="ssl http2", server=f"ssl_certificate {file}; ssl_certificate_key {file};")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "--http2", "-k", "-c", "60", "--ramp", "40/s", "-d", "3s", *PACED)


@scenario(limited("target", "tls"))
def nginx_of_tls_1_2_only(rig):
    """nginx allows TLS 1.2 only; the load offers 1.3 only."""
    file = rig.certificate()
    nginx(rig, listen="ssl", server=f"ssl_certificate {file}; ssl_certificate_key {file}; ssl_protocols TLSv1.2;")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-k", "--tls", "1.3", "-c", "40", "--ramp", "40/s", "-d", "2s", *PACED)


@scenario(limited("target", "tls"))
def a_certificate_that_is_not_trusted(rig):
    """A certificate that it has signed itself, which the load does not trust."""
    file = rig.certificate()
    nginx(rig, listen="ssl", server=f"ssl_certificate {file}; ssl_certificate_key {file};")
    rig.throng("run", f"https://127.0.0.1:{rig.port}/", "-c", "40", "--ramp", "40/s", "-d", "2s", *PACED)


@scenario(healthy())
def haproxy_as_it_is(rig):
    """haproxy before one server."""
    haproxy(rig)
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)


@scenario(limited("target", "connection-limit", "accept-queue", at=(90, 110)))
def haproxy_at_its_maxconn(rig):
    """Global maxconn 100: the others wait in the accept queue."""
    haproxy(rig, globals_="maxconn 100")
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", says="503"))
def haproxy_whose_queue_times_out(rig):
    """Two requests at a time for the backend, which takes 0.5 s each; those that queue for 1 s get 503."""
    haproxy(rig, backend="maxconn 2", defaults="timeout client 30s\n timeout server 30s\n timeout connect 3s\n timeout queue 1s", delay="0.5")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "5s")


@scenario(limited("target", "idle-cut"))
def haproxy_closes_idle_ones(rig):
    """timeout http-keep-alive 2s, which is not announced."""
    haproxy(rig, defaults="timeout client 30s\n timeout server 30s\n timeout connect 3s\n timeout http-keep-alive 2s")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "40/s", "-d", "6s", "--think", "20s..30s", "--timeout", "3s")


@scenario(limited("target", "wrong-answer", says="503"))
def haproxy_without_its_backend(rig):
    """The backend is killed in second 2: 503 from then on."""
    haproxy(rig, backend="", defaults="timeout client 30s\n timeout server 30s\n timeout connect 3s\n retries 0")
    rig.later(2, "kill", "-KILL", rig.programs[0].pid)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "5s", *PACED)


@scenario(limited("target", "wrong-answer", says="429"))
def haproxy_denies_by_rate(rig):
    """More than 100 requests of one address in 10 s: 429."""
    haproxy(rig, frontend="stick-table type ip size 1k expire 10s store http_req_rate(10s)\n http-request track-sc0 src\n"
            " http-request deny deny_status 429 if { sc_http_req_rate(0) gt 100 }")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "4s", *PACED)


@scenario(limited("target", "connection-limit", "accept-queue", "timeout", says="MaxRequestWorkers"))
def apache_prefork_of_ten(rig):
    """Prefork with MaxRequestWorkers 10: its log says that it was reached; keep-alive keeps each worker busy."""
    apache(rig, "prefork", "StartServers 10\nMinSpareServers 10\nMaxSpareServers 10\nServerLimit 10\nMaxRequestWorkers 10\nKeepAliveTimeout 60")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "5s", "--think", "200ms..400ms", "--timeout", "3s")
    rig.check("MaxRequestWorkers" in rig.output(), "its log says so")


@scenario(healthy())
def apache_event_as_it_is(rig):
    """The event MPM with its defaults: keep-alive of 5 s, a hundred requests a connection."""
    apache(rig, "event", "")
    rig.throng("run", rig.url, "-c", "150", "--ramp", "100/s", "-d", "3s", *PACED)


@scenario(limited("target", "idle-cut"))
def apache_keep_alive_timeout(rig):
    """KeepAliveTimeout 2, which Apache announces only to clients that ask for keep-alive; the pauses are longer."""
    apache(rig, "event", "KeepAliveTimeout 2")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "40/s", "-d", "6s", "--think", "20s..30s", "--timeout", "3s")


@scenario(healthy())
def apache_of_three_requests_a_connection(rig):
    """MaxKeepAliveRequests 3: each third response announces a close, and the load dials again."""
    apache(rig, "event", "MaxKeepAliveRequests 3")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "50/s", "-d", "3s", "--think", "100ms..300ms", "--timeout", "3s")


@scenario(limited("target", "connection-limit", "timeout", "closed", "stall", "ended", "accept-queue", says="WORKER TIMEOUT"))
def gunicorn_kills_its_worker(rig):
    """One synchronous worker, --timeout 2; each request takes 10 s: WORKER TIMEOUT in its log, and the worker is killed."""
    rig.needs("gunicorn")
    rig.write("slow.py", "import time\ndef app(_e, start):\n    time.sleep(10)\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "1", "-t", "2", "-b", f"0.0.0.0:{rig.port}", "slow:app")
    rig.throng("run", rig.url, "-c", "20", "--ramp", "50/s", "-d", "6s", "--timeout", "5s")
    rig.check("WORKER TIMEOUT" in rig.output(), "its log says so")


@scenario(limited("target", "saturated", "slow-accept", "connection-limit", "accept-queue"))
def gunicorn_one_worker_of_100_ms(rig):
    """One synchronous worker, 100 ms without CPU for each request; 30 connections a second arrive."""
    rig.needs("gunicorn")
    rig.write("slow.py", "import time\ndef app(_e, start):\n    time.sleep(0.1)\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "1", "-b", f"0.0.0.0:{rig.port}", "slow:app")
    rig.throng("run", rig.url, "--arrive", "30/s", "-d", "6s", "--timeout", "3s")


@scenario(healthy())
def gunicorn_closes_each(rig):
    """Two synchronous workers: each response announces its close; 40 requests a second."""
    rig.needs("gunicorn")
    rig.write("quick.py", "def app(_e, start):\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "2", "-b", f"0.0.0.0:{rig.port}", "quick:app")
    rig.throng("run", rig.url, "-c", "20", "--ramp", "20/s", "-d", "3s", *PACED)


@scenario(limited("target", "connection-limit", "timeout", "saturated", "accept-queue"))
def puma_of_two_threads(rig):
    """Two threads, 1 s without CPU for each request; 30 connections ask all the time."""
    rig.needs("puma")
    rig.write("config.ru", "run ->(_env) { sleep 1; [200, {}, [\"ok\"]] }\n")
    rig.start("puma", "-t", "2:2", "-b", f"tcp://0.0.0.0:{rig.port}")
    rig.throng("run", rig.url, "-c", "30", "--ramp", "50/s", "-d", "5s", "--timeout", "4s")


@scenario(healthy())
def puma_as_it_is(rig):
    """Five threads, quick responses; ten connections a second with two requests each."""
    rig.needs("puma")
    rig.write("config.ru", "run ->(_env) { [200, {}, [\"ok\"]] }\n")
    rig.start("puma", "-b", f"tcp://0.0.0.0:{rig.port}")
    rig.throng("run", rig.url, "--arrive", "10/s", "--calls", "2", "-d", "3s", "--timeout", "3s")


@scenario(healthy())
def caddy_as_it_is(rig):
    """Caddy responds `ok`."""
    rig.needs("caddy")
    rig.start("caddy", "respond", "--listen", f":{rig.port}", "ok", env={"HOME": str(rig.folder), "XDG_DATA_HOME": str(rig.folder)})
    rig.throng("run", rig.url, "-c", "200", "--ramp", "200/s", "-d", "3s", *PACED)


@scenario(limited("target", "connection-limit", "accept-queue", at=(48, 52)))
def go_accepts_50_at_a_time(rig):
    """A Go service with a listener of 50 connections at a time; the others wait in its accept queue."""
    rig.start(rig.built("service.go"), rig.port, "-most", "50")
    rig.throng("run", rig.url, "-c", "100", "--ramp", "100/s", "-d", "4s", "--think", "200ms..400ms", "--timeout", "3s")


@scenario(limited("target", "idle-cut"))
def go_idle_timeout(rig):
    """A Go service with an IdleTimeout of 2 s."""
    rig.start(rig.built("service.go"), rig.port, "-idle-timeout", "2s")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "40/s", "-d", "6s", "--think", "20s..30s", "--timeout", "3s")


@scenario(limited("target", "closed", "request-timeout"))
def go_write_timeout(rig):
    """A Go service with a WriteTimeout of 1 s whose responses take 2 s: closed without a response."""
    rig.start(rig.built("service.go"), rig.port, "-write-timeout", "1s", "-delay", "2s")
    rig.throng("run", rig.url, "-c", "50", "--ramp", "20/s", "-d", "3s", "--timeout", "5s")


@scenario(healthy())
def go_as_it_is(rig):
    """A Go service, 5 ms a request."""
    rig.start(rig.built("service.go"), rig.port, "-delay", "5ms")
    rig.throng("run", rig.url, "-c", "400", "--ramp", "400/s", "-d", "3s", *PACED)


@scenario(healthy())
def node_closes_idle_ones_as_announced(rig):
    """Node announces a keep-alive of 5 s (timeout=5), and closes then; the pauses are 6 s."""
    rig.needs("node")
    rig.start("node", rig.server("work.js"), rig.port, "0")
    rig.throng("run", rig.url, "-c", "40", "--ramp", "80/s", "-d", "8s", "--think", "6500ms", "--timeout", "3s")


@scenario(healthy())
def socat_echoes(rig):
    """socat, a process a connection; raw TCP with a message each second."""
    rig.needs("socat")
    rig.start("socat", f"TCP-LISTEN:{rig.port},fork,reuseaddr,backlog=200", "EXEC:cat")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "40", "--ramp", "20/s", "-d", "2s", "--message", "hello", "--ping", "1s", "--timeout", "3s")


@scenario(limited("target", "connection-limit", "accept-queue", at=(18, 22)))
def socat_with_max_children(rig):
    """socat with max-children=20: connections beyond are closed, or left in the queue."""
    rig.needs("socat")
    rig.start("socat", f"TCP-LISTEN:{rig.port},fork,reuseaddr,backlog=200,max-children=20", "EXEC:cat")
    rig.throng("run", f"tcp://127.0.0.1:{rig.port}", "-c", "40", "--ramp", "20/s", "-d", "3s", "--message", "hello", "--ping", "500ms", "--timeout", "3s")
