// doors PORT KIND [VALUE...]: services of net/http. What they did is in counts-PORT.json, or counts-PORT-NAME.json.
// pace R BURST: connections of an address beyond R a second are reset.
// sweep EVERY AGE: each EVERY, all connections that were idle for AGE or longer are closed.
// renewed FILE: HTTPS with the certificate that is in FILE when a connection comes.
// tickets FILE NAME: HTTPS with tickets of its own, at a port that it shares.
// table MIB KIB: a table of pointers of so many MiB, and KIB of garbage for each request.
// alpn FILE: HTTPS, and it offers http/1.1 only.
package main

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var (
	lock   sync.Mutex
	counts = map[string]int64{"accepted": 0, "odd": 0, "responses": 0, "resumed": 0, "full": 0, "collections": 0}
)

func count(name string) {
	lock.Lock()
	counts[name]++
	lock.Unlock()
}

type paced struct {
	net.Listener
	rate, burst, left float64
	last              time.Time
}

func (p *paced) Accept() (net.Conn, error) {
	for {
		one, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		count("accepted")
		now := time.Now()
		p.left = min(p.burst, p.left+p.rate*now.Sub(p.last).Seconds())
		p.last = now
		if p.left >= 1 {
			p.left--
			return one, nil
		}
		count("odd")
		_ = one.(*net.TCPConn).SetLinger(0)
		_ = one.Close()
	}
}

type node struct {
	next *node
	room [6]int64
}

var (
	table *node
	waste [64][]byte
)

func main() {
	port, kind, values := os.Args[1], os.Args[2], os.Args[3:]
	file := "counts-" + port + ".json"
	if kind == "tickets" {
		file = "counts-" + port + "-" + values[1] + ".json"
	}
	go func() {
		for range time.Tick(200 * time.Millisecond) {
			if kind == "table" {
				var now runtime.MemStats
				runtime.ReadMemStats(&now)
				lock.Lock()
				counts["collections"] = int64(now.NumGC)
				lock.Unlock()
			}
			lock.Lock()
			text, _ := json.Marshal(counts)
			lock.Unlock()
			_ = os.WriteFile(file+".new", text, 0o644)
			_ = os.Rename(file+".new", file)
		}
	}()
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		if kind == "tickets" {
			return raw.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, 15, 1) })
		}
		return nil
	}}
	listener := must(config.Listen(context.Background(), "tcp", ":"+port))
	garbage := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count("responses")
		for nth := 0; nth < garbage/4; nth++ {
			waste[nth&63] = make([]byte, 4096)
		}
		if r.TLS != nil {
			if r.TLS.DidResume {
				count("resumed")
			} else {
				count("full")
			}
		}
		fmt.Fprint(w, "ok")
	})}
	switch kind {
	case "pace":
		burst := must(strconv.ParseFloat(values[1], 64))
		listener = &paced{Listener: listener, rate: must(strconv.ParseFloat(values[0], 64)), burst: burst, left: burst, last: time.Now()}
	case "sweep":
		every, age := must(time.ParseDuration(values[0])), must(time.ParseDuration(values[1]))
		idle := map[net.Conn]time.Time{}
		server.ConnState = func(one net.Conn, state http.ConnState) {
			lock.Lock()
			defer lock.Unlock()
			if state == http.StateIdle || state == http.StateNew {
				idle[one] = time.Now()
			} else {
				delete(idle, one)
			}
		}
		go func() {
			for range time.Tick(every) {
				lock.Lock()
				for one, since := range idle {
					if time.Since(since) >= age {
						counts["odd"]++
						_ = one.Close()
						delete(idle, one)
					}
				}
				lock.Unlock()
			}
		}()
	case "renewed":
		server.TLSConfig = &tls.Config{NextProtos: []string{"http/1.1"}, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			one, err := tls.LoadX509KeyPair(values[0], values[0])
			return &one, err
		}}
	case "tickets", "alpn":
		server.TLSConfig = &tls.Config{NextProtos: []string{"http/1.1"}, Certificates: []tls.Certificate{must(tls.LoadX509KeyPair(values[0], values[0]))}}
	case "table":
		for nth := 0; nth < must(strconv.Atoi(values[0]))<<20/56; nth++ {
			table = &node{next: table}
		}
		garbage = must(strconv.Atoi(values[1]))
	}
	if server.TLSConfig != nil {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
		panic(server.ServeTLS(listener, "", ""))
	}
	panic(server.Serve(listener))
}
