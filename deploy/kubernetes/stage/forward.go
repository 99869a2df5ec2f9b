package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// forward leads a client of the API server to a port of a pod, with the kubelet's own code.
func (k *kubelet) forward(w http.ResponseWriter, r *http.Request) {
	pod := k.find(r.PathValue("namespace"), r.PathValue("name"))
	if pod == nil {
		http.Error(w, "no such pod", http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	portforward.ServePortForward(w, r, tunnel{pod.ip}, pod.name, "", options, 4*time.Hour, 30*time.Second, portforward.SupportedProtocols)
}

type tunnel struct{ ip string }

// PortForward copies until one end closes.
func (t tunnel) PortForward(_ context.Context, _, _ string, port int32, stream io.ReadWriteCloser) error {
	defer stream.Close()
	connection, err := net.Dial("tcp", net.JoinHostPort(t.ip, fmt.Sprint(port)))
	if err != nil {
		return err
	}
	defer connection.Close()
	ended := make(chan error, 2)
	go func() { _, err := io.Copy(connection, stream); ended <- err }()
	go func() { _, err := io.Copy(stream, connection); ended <- err }()
	return <-ended
}

// listen is a TLS listener with a certificate of its own making: the API server does not verify kubelets here.
func listen() (net.Listener, int, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, 0, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, 0, err
	}
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, 0, err
	}
	config := &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{certificate}, PrivateKey: key}}}
	return tls.NewListener(plain, config), plain.Addr().(*net.TCPAddr).Port, nil
}
