// Command publish publishes what it is asked to on standard input, as ../driver.ts says, through library-go's own atomic directory. It is
// laid into a checkout for the build (`go build -overlay`), since that package is internal.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/klog/v2"

	"github.com/openshift/library-go/pkg/operator/staticpod/internal/atomicdir"
	"github.com/openshift/library-go/pkg/operator/staticpod/internal/atomicdir/types"
)

type order struct {
	Peer    string   `json:"peer"`
	From    string   `json:"from"`
	Targets []string `json:"targets"`
}

func publish(asked order) error {
	if asked.Peer != "library-go" {
		return fmt.Errorf("no peer %q", asked.Peer)
	}
	entries, err := os.ReadDir(asked.From)
	if err != nil {
		return err
	}
	files := map[string]types.File{}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(asked.From, entry.Name()))
		if err != nil {
			return err
		}
		files[entry.Name()] = types.File{Content: content, Perm: 0o600}
	}
	for _, target := range asked.Targets {
		if err := atomicdir.Sync(target, 0o755, target+".staging", files); err != nil {
			return err
		}
	}
	return nil
}

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(nowhere{})
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

type nowhere struct{}

func (nowhere) Write(bytes []byte) (int, error) { return len(bytes), nil }
