// t4_ways MODE PORT [CERTIFICATE]: a plain server without a limit of its own, at IPv4 and IPv6. What it did is in ways.json.
//
//	http   HTTP/1.1, and HTTP/2 with prior knowledge; it reads the content of a request, and replies with its length
//	https  the same over TLS
//	tls    TLS, whose bytes come back
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

var accepted, open, most, requests, octets, http2s atomic.Int64

type counted struct{ net.Listener }

type counting struct {
	net.Conn
	closed atomic.Bool
}

func (l counted) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	accepted.Add(1)
	if now := open.Add(1); now > most.Load() {
		most.Store(now)
	}
	return &counting{Conn: conn}, nil
}

func (c *counting) Close() error {
	if !c.closed.Swap(true) {
		open.Add(-1)
	}
	return c.Conn.Close()
}

func respond(w http.ResponseWriter, r *http.Request) {
	n, _ := io.Copy(io.Discard, r.Body)
	octets.Add(n)
	requests.Add(1)
	if r.ProtoMajor == 2 {
		http2s.Add(1)
	}
	fmt.Fprintf(w, "%d\n", n)
}

func write() {
	for {
		time.Sleep(150 * time.Millisecond)
		text, _ := json.Marshal(map[string]int64{"accepted": accepted.Load(), "open": open.Load(), "most": most.Load(),
			"requests": requests.Load(), "octets": octets.Load(), "http2": http2s.Load()})
		os.WriteFile("ways.part", text, 0o600)
		os.Rename("ways.part", "ways.json")
	}
}

func main() {
	plain, err := net.Listen("tcp", ":"+os.Args[2])
	if err != nil {
		log.Fatal(err)
	}
	go write()
	var listener net.Listener = counted{plain}
	if os.Args[1] != "http" {
		pair, err := tls.LoadX509KeyPair(os.Args[3], os.Args[3])
		if err != nil {
			log.Fatal(err)
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
	}
	if os.Args[1] == "tls" {
		for {
			conn, err := listener.Accept()
			if err != nil {
				log.Fatal(err)
			}
			go func() {
				defer conn.Close()
				n, _ := io.Copy(conn, conn)
				octets.Add(n)
			}()
		}
	}
	server := &http.Server{Handler: http.HandlerFunc(respond), ErrorLog: log.New(io.Discard, "", 0), Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	log.Fatal(server.Serve(listener))
}
