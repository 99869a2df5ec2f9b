// t3_tls make FOLDER: ca.pem, and good.pem and expired.pem (each with its key) of the name "farm", issued by it.
// t3_tls serve PORT CERTIFICATE [-address A] [-sign 0s]: HTTPS; -sign: each signature takes so long in a module that makes one at a time, as
// hardware that keeps keys does. How many it made is in signed.txt.
package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func write(file string, certificate []byte, key *ecdsa.PrivateKey) {
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	if key != nil {
		der, err := x509.MarshalPKCS8PrivateKey(key)
		check(err)
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})...)
	}
	check(os.WriteFile(file, text, 0o600))
}

func make_(folder string) {
	now := time.Now()
	authorityKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "an authority"}, NotBefore: now.AddDate(-3, 0, 0), NotAfter: now.AddDate(3, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, authority, authority, &authorityKey.PublicKey, authorityKey)
	check(err)
	write(filepath.Join(folder, "ca.pem"), der, nil)
	for serial, name := range []string{"good", "expired"} {
		until := now.AddDate(0, 2, 0)
		if name == "expired" {
			until = now.Add(-31 * time.Hour)
		}
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		check(err)
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(int64(serial + 2)), Subject: pkix.Name{CommonName: "farm"}, DNSNames: []string{"farm"},
			IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: now.AddDate(0, -3, 0), NotAfter: until,
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		der, err := x509.CreateCertificate(rand.Reader, leaf, authority, &key.PublicKey, authorityKey)
		check(err)
		write(filepath.Join(folder, name+".pem"), der, key)
	}
}

type module struct {
	crypto.Signer
	takes  time.Duration
	one    sync.Mutex
	signed atomic.Int64
}

func (m *module) Sign(random io.Reader, digest []byte, options crypto.SignerOpts) ([]byte, error) {
	m.one.Lock()
	defer m.one.Unlock()
	time.Sleep(m.takes)
	m.signed.Add(1)
	return m.Signer.Sign(random, digest, options)
}

func main() {
	if os.Args[1] == "make" {
		make_(os.Args[2])
		return
	}
	options := flag.NewFlagSet("serve", flag.ExitOnError)
	address := options.String("address", "", "to listen at")
	takes := options.Duration("sign", 0, "time of a signature")
	check(options.Parse(os.Args[4:]))
	pair, err := tls.LoadX509KeyPair(os.Args[3], os.Args[3])
	check(err)
	signer := &module{Signer: pair.PrivateKey.(crypto.Signer), takes: *takes}
	if *takes > 0 {
		pair.PrivateKey = signer
		go func() {
			for range time.Tick(200 * time.Millisecond) {
				_ = os.WriteFile("signed.txt", fmt.Append(nil, signer.signed.Load()), 0o600)
			}
		}()
	}
	server := http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	listener, err := net.Listen("tcp", *address+":"+os.Args[2])
	check(err)
	fmt.Println(server.ServeTLS(listener, "", ""))
}
