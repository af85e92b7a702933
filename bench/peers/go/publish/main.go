// Command publish publishes what it is asked to on standard input, as ../../driver.ts says, each time through one peer's own code.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
	"k8s.io/kubernetes/pkg/volume/util"
)

type order struct {
	Peer    string   `json:"peer"`
	From    string   `json:"from"`
	Targets []string `json:"targets"`
}

// A directory at a time, its files in the order of their names.
var peers = map[string]func(target string, names []string, files map[string][]byte) error{
	"renameio": func(target string, names []string, files map[string][]byte) error {
		if err := os.MkdirAll(target, 0o755); err != nil {
			return err
		}
		for _, name := range names {
			if err := renameio.WriteFile(filepath.Join(target, name), files[name], 0o600); err != nil {
				return err
			}
		}
		return nil
	},
	"AtomicWriter": func(target string, names []string, files map[string][]byte) error {
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
	},
}

func publish(asked order) error {
	write, found := peers[asked.Peer]
	if !found {
		return fmt.Errorf("no peer %q", asked.Peer)
	}
	entries, err := os.ReadDir(asked.From)
	if err != nil {
		return err
	}
	names, files := []string{}, map[string][]byte{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(asked.From, entry.Name()))
		if err != nil {
			return err
		}
		names = append(names, entry.Name())
		files[entry.Name()] = content
	}
	for _, target := range asked.Targets {
		if err := write(target, names, files); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked order
		err := json.Unmarshal(lines.Bytes(), &asked)
		if err == nil {
			err = publish(asked)
		}
		answer := map[string]string{}
		if err != nil {
			answer["error"] = err.Error()
		}
		if err := answers.Encode(answer); err != nil {
			os.Exit(1)
		}
	}
}
