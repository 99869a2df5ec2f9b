// Go's net/http, on whose TLS and HTTP/2 Caddy and Traefik stand: `secured CERTIFICATE KEY`. First line: the port. /counts responds with what was counted,
// itself included.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
)

func main() {
	var connections, requests, http2 atomic.Int64
	server := http.Server{
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			requests.Add(1)
			if r.ProtoMajor == 2 {
				http2.Add(1)
			}
			if r.URL.Path == "/counts" {
				fmt.Fprintf(w, `{"connections":%d,"requests":%d,"http2":%d}`, connections.Load(), requests.Load(), http2.Load())
				return
			}
			fmt.Fprint(w, "Hello World!")
		}),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	fmt.Println("listening on", listener.Addr().(*net.TCPAddr).Port)
	panic(server.ServeTLS(listener, os.Args[1], os.Args[2]))
}
