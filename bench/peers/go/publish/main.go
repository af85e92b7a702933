// Command publish carries out the orders on standard input, as ../../driver.ts says, each time through one peer's own code.
package main

import (
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"k8s.io/kubernetes/pkg/volume/util"
)

func main() {
	takeOrders(map[string]publisher{"renameio": renameEach, "AtomicWriter": writeAtomically})
}

func renameEach(target string, names []string, files map[string][]byte) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	for _, name := range names {
		if err := renameio.WriteFile(filepath.Join(target, name), files[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

func writeAtomically(target string, names []string, files map[string][]byte) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	writer, err := util.NewAtomicWriter(target, "benchmark")
	if err != nil {
		return err
	}
	payload := map[string]util.FileProjection{}
	for _, name := range names {
		payload[name] = util.FileProjection{Data: files[name], Mode: 0o600}
	}
	return writer.Write(payload, nil)
}
