// Command dynamic-certificates prints the digest of the key pair in a directory that Kubernetes' own file watch has loaded, one line
// for each that it notices, as the servers of Kubernetes follow their certificates.
package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

type printer struct {
	content dynamiccertificates.CertKeyContentProvider
}

func (p printer) Enqueue() {
	certificate, key := p.content.CurrentCertKeyContent()
	fmt.Printf("%x\n", sha256.Sum256(append(certificate, key...)))
}

func main() {
	directory := os.Args[1]
	content, err := dynamiccertificates.NewDynamicServingContentFromFiles(
		"test", filepath.Join(directory, "tls.crt"), filepath.Join(directory, "tls.key"),
	)
	if err != nil {
		panic(err)
	}
	shown := printer{content}
	content.AddListener(shown)
	shown.Enqueue()
	content.Run(context.Background(), 1)
}
