"""Servers as people run them: proxies before several nodes, reloads, children, pools, logs, and what runs out behind them."""

import pathlib
import re
import signal
import socket
import time

from recording import healthy, limited, run_quietly, scenario, unknowable
from tuned.stock import apache


def nginx(rig, site, http="", main="worker_processes 1;", listen="backlog=1023", netns=None):
    """One site; its log is that of the rig."""
    rig.needs("nginx")
    rig.folder.chmod(0o755)
    text = f"""daemon off; pid {rig.folder}/nginx.pid; error_log stderr warn; {main}
events {{ worker_connections 2300; }}
http {{ access_log off; keepalive_requests 100000; {http}
  server {{ listen {rig.port} {listen}; {site} }} }}
"""
    return rig.start("nginx", "-p", rig.folder, "-c", rig.write("nginx.conf", text), netns=netns)


def haproxy(rig, nodes, defaults="", globals_="", mode="http", netns=None):
    """One site before these lines of servers."""
    rig.needs("haproxy")
    text = f"""global
 log stderr format raw daemon notice
 {globals_}
defaults
 mode {mode}
 log global
 timeout client 30s
 timeout server 30s
 timeout connect 3s
 {defaults}
frontend web
 bind :{rig.port}
 default_backend nodes
backend nodes
 balance roundrobin
 {nodes}
"""
    return rig.start("haproxy", "-db", "-f", rig.write("haproxy.cfg", text), netns=netns)


def nodes(rig, *ports, **start):
    """servers/odd.py at each of these ports; their programs."""
    return [rig.odd(port=port, **start) for port in ports]


def restart_later(rig, after_s, port, netns=None):
    """Starts servers/odd.py at this port in the middle of the run."""
    enter = f"ip netns exec {netns} " if netns else ""
    rig.later(after_s, "sh", "-c", f"cd {rig.folder} && exec {enter}python3 {rig.server('odd.py')} {port}")


def children(program):
    return pathlib.Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()


def state(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# --- nginx ---


@scenario(limited("target", "saturated"))
def nginx_delays_what_is_beyond_its_rate(rig):
    """limit_req of 43 requests a second with a long burst and without nodelay: 61/s are due, and each waits longer than the one before."""
    nginx(rig, "location / { limit_req zone=each burst=4000; try_files /nothing @ok; } location @ok { return 200 ok; }",
          http="limit_req_zone $binary_remote_addr zone=each:1m rate=43r/s;")
    rig.throng("run", rig.url, "-c", "310", "--rate", "61/s", "-d", "7s", "--timeout", "8s", "--threshold", "latency.p90 < 400ms")
    rig.check(rig.output().count("delaying request") > 100, "its log says so")


@scenario(limited("target", "closed", "ended"))
def nginx_reloads_and_closes_idle_ones(rig):
    """`nginx -s reload` in second 2.3: the old workers close what is idle, and end; the load does not dial again."""
    server = nginx(rig, "location / { return 200 ok; }", main="worker_processes 2;")
    before = children(server)
    rig.later("2.3", "kill", "-HUP", server.pid)
    rig.throng("run", rig.url, "-c", "140", "--ramp", "200/s", "-d", "5s", "--think", "1s..3s", "--timeout", "3s")
    after = children(server)
    rig.check(len(after) == 2 and not set(before) & set(after), f"workers {before} became {after}")


@scenario(healthy(may=("closed", "ended")))
def nginx_reloads_and_clients_dial_again(rig):
    """The same for clients that dial again, and none of whose requests may fail."""
    server = nginx(rig, "location / { return 200 ok; }", main="worker_processes 2;")
    before = children(server)
    rig.later("2.3", "kill", "-HUP", server.pid)
    rig.throng("run", rig.url, "-c", "85", "--ramp", "150/s", "-d", "5s", "--think", "300ms..900ms", "--timeout", "3s", "--reconnect", "40ms..250ms",
               "--threshold", "failed < 1%", "--threshold", "held >= 97%", "--threshold", "latency.p99 < 400ms")
    after = children(server)
    rig.check(len(after) == 2 and not set(before) & set(after), f"workers {before} became {after}")


@scenario(limited("target", "stall", "timeout", "accept-queue"))
def nginx_has_one_stopped_worker_of_four(rig):
    """Four workers, each with a listener of its own (reuseport); one is stopped in second 1.7, as in a debugger: a quarter of the arrivals
    is never served, the others are."""
    server = nginx(rig, "location / { return 200 ok; }", main="worker_processes 4;", listen="backlog=511 reuseport")
    victim = children(server)[2]
    rig.later("1.7", "kill", "-STOP", victim)
    rig.throng("run", rig.url, "--arrive", "83/s", "--calls", "2", "-d", "6s", "--timeout", "1700ms")
    rig.check(state(victim) == "T" and all(state(other) != "T" for other in children(server) if other != victim), "one of four is stopped")


@scenario(limited("target", "timeout", "stall"))
def nginx_before_four_nodes_of_which_one_is_stopped(rig):
    """Round robin over four nodes; one is stopped in second 1.9, and nginx waits for a minute: a quarter of the requests gets no response
    in time."""
    programs = nodes(rig, 3_001, 3_002, 3_003, 3_004)
    upstream = "".join(f"server 127.0.0.1:{port}; " for port in (3_001, 3_002, 3_003, 3_004))
    nginx(rig, f"access_log {rig.folder}/access.log up; location / {{ proxy_pass http://nodes; }}",
          http=f"log_format up '$status $upstream_addr'; upstream nodes {{ {upstream} }}")
    rig.later("1.9", "kill", "-STOP", programs[2].pid)
    rig.throng("run", rig.url, "-c", "66", "--ramp", "130/s", "-d", "6s", "--think", "200ms..600ms", "--timeout", "1500ms",
               "--reconnect", "100ms..300ms")
    given_up = [line for line in rig.output("access.log").splitlines() if line.startswith("499")]
    rig.check(len(given_up) > 20 and all("127.0.0.1:3003" in line for line in given_up), f"{len(given_up)} given up, all at the stopped node")


@scenario(limited("target", "wrong-answer", "ports", says="502|assign requested address|ports?"))
def nginx_out_of_ports_to_its_node(rig):
    """nginx dials its node anew for each request; its host has 181 local ports, which are in TIME_WAIT for a minute: 502 from then on."""
    far = rig.far()
    rig.netns_output(far, "sysctl", "-qw", "net.ipv4.ip_local_port_range=41000 41180", "net.ipv4.tcp_tw_reuse=0")
    rig.odd(port=3_001, netns=far)
    nginx(rig, "location / { proxy_pass http://127.0.0.1:3001; }", netns=far)
    rig.throng("run", rig.url, "-c", "30", "--rate", "61/s", "-d", "7s", "--timeout", "3s")
    rig.check("99: Cannot assign requested address" in rig.output(), "its log says so")


@scenario(limited("target", "ports", certainty="seen", at=(150, 150), sentence="out of local ports to its upstream",
                  detail="its log: .*99: Cannot assign requested address", fix="keepalive in upstream"))
def nginx_out_of_ports_to_a_slow_node(rig):
    """nginx dials its node anew for each request, which takes a second; its host has 60 local ports, and up to 150 requests are under way: 502
    beyond the 60th."""
    rig.sysctl("net.ipv4.ip_local_port_range", "41000 41059")
    rig.odd("--delay", 1, port=3_001)
    nginx(rig, "location / { proxy_pass http://127.0.0.1:3001; }")
    rig.throng("run", rig.url, "-c", "150", "--ramp", "150/s", "-d", "4s", "--think", "300ms..700ms", "--timeout", "5s")
    rig.check("99: Cannot assign requested address" in rig.output(), "its log says so")
    rig.check(40 <= rig.counted()["most_open"] <= 60, f"at most 60 at the node: {rig.counted()}")


@scenario(limited("target", "ports", certainty="seen", at=(150, 150), sentence="out of local ports to its upstream", detail="its log: .*no free ports"))
def haproxy_out_of_ports_to_a_slow_node(rig):
    """The same of HAProxy, which tries once more after a second: 503."""
    rig.sysctl("net.ipv4.ip_local_port_range", "41000 41059")
    rig.odd("--delay", 1, port=3_001)
    haproxy(rig, "server a 127.0.0.1:3001", defaults="retries 1")
    rig.throng("run", rig.url, "-c", "150", "--ramp", "150/s", "-d", "5s", "--think", "300ms..700ms", "--timeout", "5s")
    rig.check("no free ports" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", says="502", never="local ports"))
def nginx_before_a_node_of_ipv6_that_is_off(rig):
    """The node is configured as [::1], and IPv6 is turned off: the error is that of a lack of ports, of which there are 28,232."""
    rig.sysctl("net.ipv6.conf.all.disable_ipv6", 1)
    rig.odd(port=3_001)
    nginx(rig, "location / { proxy_pass http://[::1]:3001; }")
    rig.throng("run", rig.url, "-c", "60", "--ramp", "100/s", "-d", "2s", "--think", "300ms..700ms", "--timeout", "3s")
    rig.check("[::1]:3001 failed (99: Cannot assign requested address)" in rig.output(), "its log says so")


@scenario(healthy())
def nginx_with_a_full_disk_for_its_log(rig):
    """The file system of its access log is full after a second: a line is cut off, the others are lost, and it serves on."""
    disk = rig.folder / "log"
    disk.mkdir()
    run_quietly("mount", "-t", "tmpfs", "-o", "size=64k", "none", str(disk))
    nginx(rig, f"access_log {disk}/access.log; location / {{ return 200 ok; }}")
    rig.throng("run", rig.url, "-c", "90", "--ramp", "180/s", "-d", "4s", "--think", "40ms..120ms", "--timeout", "3s")
    rig.check("was incomplete" in rig.output() and "100%" in run_quietly("df", disk), "its disk is full, and a line was cut off")
    run_quietly("umount", "-l", str(disk))


@scenario(limited("target", "wrong-answer", says="502"))
def nginx_and_node_disagree_about_keep_alive(rig):
    """nginx keeps connections to a service of Node for a minute, which closes them after 230 ms, late because its loop is busy: a POST
    that was on its way then is 502."""
    rig.needs("node")
    rig.start("node", rig.server("t3_apps.js"), 3_001, "disagrees", 230, 110, port=3_001, log="node.log")
    nginx(rig, "location / { proxy_pass http://node; proxy_http_version 1.1; proxy_set_header Connection ''; }",
          http="upstream node { server 127.0.0.1:3001; keepalive 32; }")
    rig.throng("run", rig.url, "-c", "45", "--ramp", "90/s", "--body", "n={seq}", "-d", "6s", "--think", "250ms..650ms", "--timeout", "3s")
    seen = len(re.findall("prematurely closed|reset by peer", rig.output()))
    rig.check(seen > 4, f"{seen} in its log")


@scenario(healthy(may=("wrong-answer",)))
def nginx_with_a_canary_within_the_budget(rig):
    """One request in sixty goes to a new version, which fails (500); at most 4 % may."""
    rig.odd(port=3_001)
    rig.odd("--status", "500 Internal Server Error", port=3_002)
    nginx(rig, f"access_log {rig.folder}/access.log up; location / {{ proxy_pass http://nodes; }}",
          http="log_format up '$status'; upstream nodes { server 127.0.0.1:3001 weight=59; server 127.0.0.1:3002 max_fails=0; }")
    rig.throng("run", rig.url, "-c", "70", "--ramp", "140/s", "-d", "4s", "--think", "100ms..300ms", "--timeout", "3s", "--threshold", "errors < 4%")
    failed, all_ = rig.output("access.log").split().count("500"), len(rig.output("access.log").split())
    rig.check(5 < failed < all_ / 50, f"{failed} of {all_} failed")


# --- PHP ---


def php(rig, script, pool):
    """php-fpm behind nginx, over a socket of the file system."""
    rig.needs("php-fpm8.2", "nginx")
    rig.folder.chmod(0o755)
    rig.write("index.php", script)
    conf = f"""[global]
error_log = {rig.folder}/fpm.log
daemonize = no
[www]
user = www-data
group = www-data
listen = {rig.folder}/php.sock
listen.mode = 0666
{pool}
"""
    rig.start("php-fpm8.2", "-F", "-y", rig.write("fpm.conf", conf), wait=False, log="php.log")
    for _ in range(100):
        if (rig.folder / "php.sock").exists():
            break
        time.sleep(0.1)
    return nginx(rig, f"""location / {{ fastcgi_param SCRIPT_FILENAME {rig.folder}/index.php; fastcgi_param REQUEST_METHOD $request_method;
        fastcgi_param QUERY_STRING $query_string; fastcgi_pass unix:{rig.folder}/php.sock; }}""")


@scenario(limited("target", "wrong-answer", "saturated", "accept-queue"))
def php_fpm_of_four_children(rig):
    """170 ms for each request in four children, 41 arrive in a second; its queue has 19 places, and nginx says 502 to the others."""
    php(rig, "<?php usleep(170000); echo 'ok';\n",
        "listen.backlog = 19\npm = dynamic\npm.max_children = 4\npm.start_servers = 4\npm.min_spare_servers = 1\npm.max_spare_servers = 4")
    rig.throng("run", rig.url, "--arrive", "41/s", "-d", "6s", "--timeout", "4s")
    rig.check("Resource temporarily unavailable" in rig.output(), "its log says so")


@scenario(limited("target", "wrong-answer", "memory", "heap", says="500|memory"))
def php_beyond_its_memory_limit(rig):
    """memory_limit 24M; a request for many rows needs more: 500, and a fatal error in its log; those for fewer are served."""
    php(rig, "<?php $rows = (int) ($_GET['rows'] ?? 1); $all = str_repeat('x', $rows * 400); echo strlen($all) > 0 ? 'ok' : '';\n",
        "pm = static\npm.max_children = 3\nphp_admin_value[memory_limit] = 24M\nphp_admin_flag[display_errors] = off\nphp_admin_flag[log_errors] = on")
    rig.throng("run", rig.url + "?rows={rand 1 77000}", "-c", "37", "--ramp", "70/s", "-d", "4s", "--think", "200ms..600ms", "--timeout", "3s")
    rig.check("Allowed memory size" in rig.output() + rig.output("fpm.log") + rig.output("php.log"), "its log says so")


# --- haproxy ---


def asked(rig, command):
    """What haproxy says at its socket."""
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(rig.folder / "stats.sock"))
        peer.sendall(f"{command}\n".encode())
        text = b""
        while piece := peer.recv(65_536):
            text += piece
    return text.decode()


@scenario(healthy())
def haproxy_hides_a_dead_node(rig):
    """Nothing listens at one of three nodes, and nothing checks them: each third request is sent to another one at once."""
    nodes(rig, 3_001, 3_003)
    haproxy(rig, "server a 127.0.0.1:3001\n server b 127.0.0.1:3002\n server c 127.0.0.1:3003", defaults="retries 3\n option redispatch 1",
            globals_=f"stats socket {rig.folder}/stats.sock mode 600")
    rig.throng("run", rig.url, "-c", "110", "--ramp", "150/s", "-d", "4s", "--think", "200ms..500ms", "--timeout", "3s",
               "--threshold", "latency.p99 < 900ms", "--threshold", "errors == 0%")
    head, *rows = asked(rig, "show stat").splitlines()
    column = head.lstrip("# ").split(",").index("wredis")
    again = sum(int(row.split(",")[column] or 0) for row in rows if row.startswith("nodes,b"))
    rig.check(again > 100, f"{again} were sent to another node")


@scenario(healthy())
def haproxy_over_a_rolling_restart(rig):
    """Two nodes are restarted one after the other, with 0.8 s between; checks and repeated requests hide it."""
    first, second = nodes(rig, 3_001, 3_002)
    haproxy(rig, "default-server check inter 200ms fall 1 rise 1\n server a 127.0.0.1:3001\n server b 127.0.0.1:3002",
            defaults="retries 3\n option redispatch 1\n retry-on conn-failure empty-response response-timeout")
    rig.later("1.6", "kill", "-TERM", first.pid)
    restart_later(rig, "2.4", 3_001)
    rig.later("3.9", "kill", "-TERM", second.pid)
    restart_later(rig, "4.7", 3_002)
    rig.throng("run", rig.url, "-c", "75", "--ramp", "150/s", "-d", "6s", "--think", "100ms..300ms", "--timeout", "3s")
    said = rig.output()
    rig.check(all(f"Server nodes/{name} is {what}" in said for name in "ab" for what in ("DOWN", "UP")), "both were down and up again")


@scenario(limited("target", "wrong-answer", says="503"))
def haproxy_believes_a_failing_health_check(rig):
    """Both nodes serve all the time, but their /health depends on a database that is away from second 2.2 to 3.9: no node is left, 503."""
    rig.needs("node")
    away = rig.folder / "away"
    for port in (3_001, 3_002):
        rig.start("node", rig.server("t3_apps.js"), port, "health", away, port=port, log="node.log")
    haproxy(rig, "option httpchk GET /health\n http-check expect status 200\n default-server check inter 250ms fall 2 rise 2\n"
            " server a 127.0.0.1:3001\n server b 127.0.0.1:3002")
    rig.later("2.2", "touch", away)
    rig.later("3.9", "rm", away)
    rig.throng("run", rig.url, "-c", "85", "--ramp", "120/s", "-d", "6s", "--think", "200ms..500ms", "--timeout", "3s")
    rig.check("backend nodes has no server available" in rig.output().replace("'", ""), "its log says so")


# --- Caddy, Apache, gunicorn, Puma, PostgreSQL ---


@scenario(limited("target", "open-files", at=(295, 337)))
def caddy_out_of_files(rig):
    """337 open files for 520 connections, which send each 2 s to 4 s."""
    rig.needs("caddy")
    server = rig.start("caddy", "respond", "--listen", f":{rig.port}", "ok", files=337, env={"HOME": str(rig.folder), "XDG_DATA_HOME": str(rig.folder)})
    rig.later("4.2", "sh", "-c", f"ls /proc/{server.pid}/fd | wc -l > {rig.folder}/files")
    rig.throng("run", rig.url, "-c", "520", "--ramp", "260/s", "-d", "3s", "--think", "2s..4s", "--timeout", "3s")
    rig.check(int(rig.output("files") or 0) >= 335, f"{rig.output('files').strip()} files open")


@scenario(healthy())
def apache_restarts_gracefully_under_arrivals(rig):
    """SIGUSR1 in second 2.1: new children take over while 67 connections arrive in a second, with a request each."""
    server = apache(rig, "event", "")
    before = children(server)
    rig.later("2.1", "kill", "-USR1", server.pid)
    rig.throng("run", rig.url, "--arrive", "67/s", "-d", "5s", "--timeout", "3s")
    after = children(server)
    rig.check(after and not set(before) & set(after), f"children {before} became {after}")


@scenario(limited("target", "stall", "accept-queue", "ended"))
def gunicorn_recycles_its_only_worker(rig):
    """--max-requests 97 and one worker, which takes 1.3 s to load its model: all wait for the next one each 2.4 s; the threshold is 600 ms."""
    rig.needs("gunicorn")
    rig.write("model.py", "import time\ntime.sleep(1.3)\nprint('loaded', flush=True)\n\n"
              "def app(_e, start):\n    start('200 OK', [('Content-Length', '2')])\n    return [b'ok']\n")
    rig.start("gunicorn", "-w", "1", "--max-requests", "97", "-b", f"0.0.0.0:{rig.port}", "model:app")
    for _ in range(100):
        if "loaded" in rig.output():
            break
        time.sleep(0.1)
    rig.throng("run", rig.url, "--arrive", "40/s", "-d", "7s", "--timeout", "5s", "--threshold", "latency.p95 < 600ms")
    rig.check(rig.output().count("loaded") >= 3 and "Autorestarting worker" in rig.output(), "it was recycled twice")


@scenario(limited("target", "wrong-answer", "saturated", says="500|pool|other"))
def puma_with_a_pool_of_three(rig):
    """24 threads share three connections to a database, whose queries take 240 ms; who waits for one for 0.7 s gets 500."""
    rig.needs("puma")
    rig.write("config.ru", """require "timeout"
POOL = SizedQueue.new(3)
3.times { |n| POOL << n }
run ->(_env) {
  begin
    connection = Timeout.timeout(0.7) { POOL.pop }
    begin
      sleep 0.24
    ensure
      POOL << connection
    end
    [200, {}, ["ok"]]
  rescue Timeout::Error
    $stderr.puts "ConnectionTimeoutError: could not obtain a connection from the pool within 0.700 seconds; all pooled connections were in use"
    [500, {}, ["sorry"]]
  end
}
""")
    rig.start("puma", "-t", "24:24", "-b", f"tcp://0.0.0.0:{rig.port}")
    rig.throng("run", rig.url, "-c", "22", "--ramp", "40/s", "-d", "5s", "--think", "300ms..700ms", "--timeout", "4s")
    rig.check(rig.output().count("could not obtain a connection") > 20, "its log says so")


CLIENT = """ramp = "60/s"
duration = "4s"
timeout = "3s"
[[population]]
name = "app"
target = "tcp://127.0.0.1:{port}"
connections = 71
loop = "query"
[[population.step]]
name = "start"
send-hex = "{start}"
expect = {{ body = "server_version" }}
[[population.step]]
wait = "500ms..900ms"
[[population.step]]
name = "query"
send-hex = "51 00 00 00 0d {query}"
expect = {{ body = "SELECT 1" }}
[[population.step]]
wait = "500ms..900ms"
"""


@scenario(limited("target", "connection-limit", at=(50, 50)))
def postgres_has_no_slots_left(rig):
    """max_connections 53, of which three are for superusers; 71 connections of an application come, and query each second."""
    rig.needs("postgres", "initdb", "psql", "setpriv")
    rig.folder.chmod(0o755)
    data = rig.folder / "data"
    data.mkdir()
    run_quietly("chown", "postgres", data)
    own = ("setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups")
    run_quietly(*own, "initdb", "-D", data, "-A", "trust", "-U", "postgres", "--no-sync", cwd=rig.folder)
    options = {"max_connections": 53, "superuser_reserved_connections": 3, "listen_addresses": "127.0.0.1", "unix_socket_directories": "", "fsync": "off",
               "autovacuum": "off"}
    rig.start(*own, "postgres", "-D", data, "-p", rig.port, *(word for name, value in options.items() for word in ("-c", f"{name}={value}")))
    for _ in range(50):
        try:
            run_quietly("psql", "-h", "127.0.0.1", "-p", rig.port, "-U", "postgres", "-c", "create role app login", cwd=rig.folder)
            break
        except Exception:  # noqa: BLE001  (it is starting)
            time.sleep(0.2)
    parameters = b"\0\3\0\0user\0app\0database\0postgres\0\0"
    start = (len(parameters) + 4).to_bytes(4, "big") + parameters
    rig.throng("run", rig.write("load.toml", CLIENT.format(port=rig.port, start=start.hex(), query=b"select 1\0".hex())))
    rig.check(re.search("remaining connection slots|too many clients", rig.output()), "its log says so")


# --- behind a balancer that is far away ---


@scenario(unknowable(may=("timeout",)))
def one_of_five_nodes_afar_swallows_requests(rig):
    """A balancer of TCP on another host, before five nodes; one of them reads requests and does nothing. From here, some connections are
    silent."""
    far = rig.far()
    nodes(rig, 3_001, 3_002, 3_003, 3_004, netns=far)
    rig.odd("--then", "hang", "--say", "read", port=3_005, netns=far, log="silent.log")
    haproxy(rig, "\n ".join(f"server n{port} 127.0.0.1:{port}" for port in range(3_001, 3_006)), mode="tcp", netns=far)
    rig.throng("run", rig.url, "-c", "60", "--ramp", "60/s", "-d", "5s", "--think", "150ms..450ms", "--timeout", "1500ms")
    rig.check(rig.output("silent.log").count("read") >= 5, "it read some")


@scenario(unknowable(may=("closed",)))
def one_of_three_nodes_afar_is_restarted(rig):
    """A balancer of TCP on another host; one of its three nodes is killed in second 2.4 and is back in second 3.2: a third of the
    connections ends at once, and from here nothing says why."""
    far = rig.far()
    programs = nodes(rig, 3_001, 3_002, 3_003, netns=far)
    haproxy(rig, "default-server check inter 200ms fall 1 rise 1\n " + "\n ".join(f"server n{port} 127.0.0.1:{port}" for port in (3_001, 3_002, 3_003)),
            mode="tcp", netns=far)
    rig.later("2.4", "kill", "-KILL", programs[1].pid)
    restart_later(rig, "3.2", 3_002, netns=far)
    rig.throng("run", rig.url, "-c", "90", "--ramp", "150/s", "-d", "5s", "--think", "200ms..600ms", "--timeout", "3s")
    rig.check(programs[1].poll() == -signal.SIGKILL and "n3002 is DOWN" in rig.output(), "it was killed")
