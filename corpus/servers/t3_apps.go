// t3_apps PORT [-option value]...: services in Go as they are written every day, with locks, caches, parallel work, and a graceful end.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

var (
	served           atomic.Int64
	accounts, ledger sync.Mutex
	cache            sync.Map
)

// What this thread has used of a processor, whatever else runs there.
func used() time.Duration {
	const clockThread = 3
	var at syscall.Timespec
	syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockThread, uintptr(unsafe.Pointer(&at)), 0)
	return time.Duration(at.Nano())
}

func spin(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for until := used() + d; used() < until; {
	}
}

// Work of this much CPU in each of so many goroutines.
func parallel(goroutines int, work time.Duration) {
	var all sync.WaitGroup
	for range goroutines {
		all.Add(1)
		go func() {
			defer all.Done()
			spin(work)
		}()
	}
	all.Wait()
}

// Two locks in one order here, and in the other one there.
func audit() {
	ledger.Lock()
	time.Sleep(40 * time.Millisecond)
	accounts.Lock()
	accounts.Unlock()
	ledger.Unlock()
}

func transfer(n, audited int64) {
	if audited > 0 && n == audited {
		go audit()
		time.Sleep(5 * time.Millisecond)
	}
	accounts.Lock()
	if audited > 0 && n >= audited {
		time.Sleep(60 * time.Millisecond)
	}
	ledger.Lock()
	ledger.Unlock()
	accounts.Unlock()
}

func main() {
	port, options := os.Args[1], flag.NewFlagSet("t3_apps", flag.ExitOnError)
	hold := options.Duration("hold", 0, "pause of each request to /write under a lock")
	audited := options.Int64("audit", 0, "the request beside which an audit runs")
	keep := options.Int("keep", 0, "bytes that stay in its cache for each request")
	goroutines := options.Int("parallel", 1, "goroutines of each request")
	work := options.Duration("work", 0, "CPU of each of them")
	reuse := options.Bool("reuse-port", false, "listens beside another one")
	options.Parse(os.Args[2:])

	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := served.Add(1)
		if *keep > 0 {
			entry := make([]byte, *keep)
			for at := 0; at < len(entry); at += 1024 {
				entry[at] = 1
			}
			cache.Store(n, entry)
		}
		if *work > 0 {
			parallel(*goroutines, *work)
		}
		if *audited > 0 {
			transfer(n, *audited)
		}
		if r.URL.Path == "/write" {
			ledger.Lock()
			time.Sleep(*hold)
			ledger.Unlock()
		}
		fmt.Fprint(w, "ok")
	})
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			if *reuse {
				const soReusePort = 15
				syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soReusePort, 1)
			}
		})
	}}
	listener, err := config.Listen(context.Background(), "tcp", ":"+port)
	if err != nil {
		panic(err)
	}
	server, done := http.Server{Handler: handler}, make(chan struct{})
	go func() {
		asked := make(chan os.Signal, 1)
		signal.Notify(asked, syscall.SIGTERM)
		<-asked
		fmt.Println("draining")
		server.Shutdown(context.Background())
		close(done)
	}()
	fmt.Println(server.Serve(listener))
	<-done
	fmt.Printf("pid %d served %d\n", os.Getpid(), served.Load())
}
