// t4_apps make FOLDER: ca.pem, good.pem (a chain with an intermediate, and its key), stale.pem (the same with an intermediate that has
// expired), rsa.pem (RSA of 4,096 bits), client.pem and client.key, all for 127.0.0.1.
// t4_apps items PORT: HTTP; /item/N, and it has no item whose number is a multiple of 29, which its author did not expect.
// t4_apps tls PORT FILE [-client] [-12] [-cbc] [-alert N]: HTTPS with client certificates, TLS 1.2 only, only ciphers of CBC, or a plain alert in
// place of one response in N.
// t4_apps uploads PORT -read 900ms: reads what is sent, as long as it takes no longer than that.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

type one struct {
	certificate *x509.Certificate
	der         []byte
	key         crypto.Signer
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var (
	serial   int64
	requests atomic.Int64
)

func issued(name string, by *one, isCA bool, key crypto.Signer, until time.Time, use x509.ExtKeyUsage) *one {
	serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().AddDate(-1, 0, 0), NotAfter: until,
		IsCA: isCA, BasicConstraintsValid: true,
	}
	if isCA {
		template.KeyUsage = x509.KeyUsageCertSign
	} else {
		template.KeyUsage = x509.KeyUsageDigitalSignature
		template.ExtKeyUsage = []x509.ExtKeyUsage{use}
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.certificate, by.key
	}
	der := must(x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer))
	return &one{must(x509.ParseCertificate(der)), der, key}
}

func text(key crypto.Signer, chain ...*one) (text []byte) {
	for _, each := range chain {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: each.der})...)
	}
	if key != nil {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: must(x509.MarshalPKCS8PrivateKey(key))})...)
	}
	return text
}

func ec() crypto.Signer { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) }

func authorities(folder string) {
	later, ago := time.Now().AddDate(1, 0, 0), time.Now().Add(-50*time.Hour)
	server, client := x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth
	write := func(name string, text []byte) {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
			panic(err)
		}
	}
	root := issued("a root", nil, true, ec(), later, server)
	key := ec()
	middle, stale := issued("issuing 7", root, true, key, later, server), issued("issuing 7", root, true, key, ago, server)
	leaf := issued("shop", middle, false, ec(), later, server)
	large := issued("shop", root, false, must(rsa.GenerateKey(rand.Reader, 4096)), later, server)
	user := issued("load", root, false, ec(), later, client)
	write("ca.pem", text(nil, root))
	write("good.pem", text(leaf.key, leaf, middle))
	write("stale.pem", text(leaf.key, leaf, stale))
	write("rsa.pem", text(large.key, large))
	write("client.pem", text(nil, user))
	write("client.key", text(user.key))
}

func main() {
	kind := os.Args[1]
	if kind == "make" {
		authorities(os.Args[2])
		return
	}
	address, options := ":"+os.Args[2], flag.NewFlagSet(kind, flag.ExitOnError)
	wants := options.Bool("client", false, "a client certificate")
	old := options.Bool("12", false, "TLS 1.2 only")
	cbc := options.Bool("cbc", false, "ciphers of CBC only")
	alert := options.Int64("alert", 0, "one alert in so many requests")
	read := options.Duration("read", 0, "time for a request")
	switch kind {
	case "items":
		items := map[int]*struct{ name string }{}
		for nth := 1; nth <= 1000; nth++ {
			if nth%29 != 0 {
				items[nth] = &struct{ name string }{fmt.Sprint("item ", nth)}
			}
		}
		panic(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			nth, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/item/"))
			fmt.Fprint(w, items[nth].name)
		})))
	case "uploads":
		_ = options.Parse(os.Args[3:])
		server := http.Server{Addr: address, ReadTimeout: *read, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				fmt.Println("body:", err)
				http.Error(w, "too slow", http.StatusRequestTimeout)
				return
			}
			fmt.Println("read")
			fmt.Fprint(w, "ok")
		})}
		panic(server.ListenAndServe())
	case "tls":
		_ = options.Parse(os.Args[4:])
		config := &tls.Config{Certificates: []tls.Certificate{must(tls.LoadX509KeyPair(os.Args[3], os.Args[3]))}, NextProtos: []string{"http/1.1"}}
		if *wants {
			config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
			config.ClientCAs.AppendCertsFromPEM(must(os.ReadFile("ca.pem")))
		}
		if *old || *cbc {
			config.MaxVersion = tls.VersionTLS12
		}
		if *cbc {
			config.CipherSuites = []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA}
		}
		none := map[string]func(*http.Server, *tls.Conn, http.Handler){} // No HTTP/2, which has demands on ciphers
		server := http.Server{Addr: address, TLSConfig: config, TLSNextProto: none, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if *alert > 0 && requests.Add(1)%*alert == 0 {
				taken, _, _ := w.(http.Hijacker).Hijack()
				raw := taken.(*tls.Conn).NetConn()
				_, _ = raw.Write([]byte{21, 3, 3, 0, 2, 2, 80})
				_ = raw.Close()
				fmt.Println("alert sent")
				return
			}
			fmt.Fprint(w, "ok")
		})}
		panic(server.ListenAndServeTLS("", ""))
	}
}
