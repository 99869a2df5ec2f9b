// ho_go PORT MODE [N]: Go's net/http, HTTP/1.1 and HTTP/2 without TLS. MODE: plain; gate (accepts N connections at once, and no more until
// one ends); pool (N handlers at once, each 200 ms asleep); spin (N ms of CPU a request); goaway (a connection ends after N requests,
// announced); grpc (status N); keep (N KiB of memory a connection); late (listens N ms after its start); shutdown (graceful, N ms after
// the start).
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

type gate struct {
	net.Listener
	places chan struct{}
}

type guest struct {
	net.Conn
	once  sync.Once
	leave func()
}

func (g *guest) Close() error {
	g.once.Do(g.leave)
	return g.Conn.Close()
}

func (g *gate) Accept() (net.Conn, error) {
	select {
	case g.places <- struct{}{}:
	default:
		fmt.Println("gate is full")
		g.places <- struct{}{}
	}
	conn, err := g.Listener.Accept()
	if err != nil {
		<-g.places
		return nil, err
	}
	return &guest{Conn: conn, leave: func() { <-g.places }}, nil
}

type counter struct{}

func main() {
	port, mode, n := os.Args[1], os.Args[2], 0
	if len(os.Args) > 3 {
		n, _ = strconv.Atoi(os.Args[3])
	}
	if mode == "late" {
		time.Sleep(time.Duration(n) * time.Millisecond)
	}
	listener, err := net.Listen("tcp4", "0.0.0.0:"+port)
	if err != nil {
		panic(err)
	}
	if mode == "gate" {
		listener = &gate{Listener: listener, places: make(chan struct{}, n)}
	}
	pool, message, kept, guard := make(chan struct{}, max(n, 1)), []byte{0, 0, 0, 0, 0}, [][]byte{}, sync.Mutex{}
	handle := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		switch mode {
		case "pool":
			pool <- struct{}{}
			time.Sleep(200 * time.Millisecond)
			<-pool
		case "spin":
			for until := time.Now().Add(time.Duration(n) * time.Millisecond); time.Now().Before(until); {
			}
		case "grpc":
			w.Header().Set("Content-Type", "application/grpc")
			w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
			if n == 0 {
				w.Write(message)
			}
			w.WriteHeader(200)
			w.Header().Set("Grpc-Status", strconv.Itoa(n))
			w.Header().Set("Grpc-Message", "status "+strconv.Itoa(n))
			return
		case "goaway":
			calls := r.Context().Value(counter{}).(*int)
			guard.Lock()
			*calls++
			if *calls >= n {
				w.Header().Set("Connection", "close")
			}
			guard.Unlock()
		}
		io.WriteString(w, "ok")
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: http.HandlerFunc(handle), Protocols: protocols}
	server.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		if mode == "keep" {
			block := make([]byte, n<<10)
			for index := 0; index < len(block); index += 4096 {
				block[index] = 1
			}
			guard.Lock()
			kept = append(kept, block)
			guard.Unlock()
		}
		return context.WithValue(ctx, counter{}, new(int))
	}
	if mode == "shutdown" {
		time.AfterFunc(time.Duration(n)*time.Millisecond, func() {
			fmt.Println("shutting down")
			server.Shutdown(context.Background())
		})
	}
	fmt.Println(server.Serve(listener))
	time.Sleep(time.Second)
}
