package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"
)

// writePairs makes certificates whose serial numbers are 1 to count, each with a key of its own.
func writePairs(count int64, directory string) error {
	for serial := int64(1); serial <= count; serial++ {
		if err := writePair(serial, directory); err != nil {
			return err
		}
	}
	return nil
}

func writePair(serial int64, directory string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: fmt.Sprintf("pair %d", serial)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(48 * time.Hour),
	}
	certificate, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	files := map[string]*pem.Block{
		".crt": {Type: "CERTIFICATE", Bytes: certificate},
		".key": {Type: "PRIVATE KEY", Bytes: encoded},
	}
	for suffix, block := range files {
		path := filepath.Join(directory, fmt.Sprint(serial)+suffix)
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			return err
		}
	}
	return nil
}
