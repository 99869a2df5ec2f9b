// service PORT [-option value]...: an HTTP service in Go, with work, limits and timeouts.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync/atomic"
	"time"
)

// Accepts no more than most connections at a time.
type limited struct {
	net.Listener
	places chan struct{}
}

type place struct {
	net.Conn
	free func()
}

func (l limited) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	accepted, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	var once atomic.Bool
	return place{accepted, func() {
		if once.CompareAndSwap(false, true) {
			<-l.places
		}
	}}, nil
}

func (p place) Close() error {
	p.free()
	return p.Conn.Close()
}

func spin(d time.Duration) {
	for until := time.Now().Add(d); time.Now().Before(until); {
	}
}

func main() {
	port, options := os.Args[1], flag.NewFlagSet("service", flag.ExitOnError)
	most := options.Int("most", 0, "connections accepted at a time")
	work := options.Duration("work", 0, "CPU of each request")
	delay := options.Duration("delay", 0, "pause of each request")
	stuck := options.Int64("stuck", 0, "of these many requests the first such one spins for ever")
	read := options.Duration("read-timeout", 0, "")
	idle := options.Duration("idle-timeout", 0, "")
	write := options.Duration("write-timeout", 0, "")
	cert := options.String("cert", "", "certificate and key")
	plain2 := options.Bool("h2c", false, "HTTP/2 with prior knowledge")
	streams := options.Int("streams", 250, "concurrent streams of a connection")
	options.Parse(os.Args[2:])
	var served, spinning atomic.Int64
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if n := served.Add(1); *stuck > 0 && n%*stuck == 0 && spinning.Add(1) <= 1 {
			for {
			}
		}
		spin(*work)
		time.Sleep(*delay)
		fmt.Fprint(w, "ok")
	})
	listener, err := net.Listen("tcp", ":"+port)
	if err != nil {
		panic(err)
	}
	if *most > 0 {
		listener = limited{listener, make(chan struct{}, *most)}
	}
	server := http.Server{Handler: handler, ReadTimeout: *read, IdleTimeout: *idle, WriteTimeout: *write}
	server.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: *streams}
	if *plain2 {
		server.Protocols = new(http.Protocols)
		server.Protocols.SetHTTP1(true)
		server.Protocols.SetUnencryptedHTTP2(true)
	}
	if *cert != "" {
		err = server.ServeTLS(listener, *cert, *cert)
	} else {
		err = server.Serve(listener)
	}
	fmt.Println(err)
}
