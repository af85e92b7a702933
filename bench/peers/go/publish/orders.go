package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

type order struct {
	Peer    string   `json:"peer"`
	From    string   `json:"from"`
	Targets []string `json:"targets"`
}

// A publisher makes a directory hold the files, which it may write in the order of their names.
type publisher func(target string, names []string, files map[string][]byte) error

// takeOrders answers each line of standard input, as ../../driver.ts says, through the peer that it names.
func takeOrders(peers map[string]publisher) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked order
		err := json.Unmarshal(lines.Bytes(), &asked)
		if err == nil {
			err = publish(peers, asked)
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

func publish(peers map[string]publisher, asked order) error {
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
