// Command kubelet-decode runs kubelet's own source of static pods on a directory, and prints what kubelet makes of the manifests
// there: one JSON object for each file that it refuses, `{"path": …, "error": …}`, and one for each set of pods that it would run,
// `{"pods": […]}`. The directory is read when the program starts, and again after each interval (Go's form, such as 100ms).
package main

import (
	"encoding/json"
	"os"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/config"
	kubetypes "k8s.io/kubernetes/pkg/kubelet/types"
)

type refusal struct {
	Path  any    `json:"path"`
	Error string `json:"error"`
}

type set struct {
	Pods []*v1.Pod `json:"pods"`
}

// The file source tells of a manifest that it refuses in its log alone.
type sink struct{}

func (sink) Init(logr.RuntimeInfo)            {}
func (sink) Enabled(int) bool                 { return false }
func (sink) Info(int, string, ...any)         {}
func (s sink) WithValues(...any) logr.LogSink { return s }
func (s sink) WithName(string) logr.LogSink   { return s }
func (sink) Error(err error, message string, keysAndValues ...any) {
	told := refusal{Error: message}
	if err != nil {
		told.Error = err.Error()
	}
	for at := 0; at+1 < len(keysAndValues); at += 2 {
		if keysAndValues[at] == "path" {
			told.Path = keysAndValues[at+1]
		}
	}
	show(told)
}

func show(value any) {
	line, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	if _, err := os.Stdout.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

func main() {
	interval, err := time.ParseDuration(os.Args[2])
	if err != nil {
		panic(err)
	}
	updates := make(chan interface{})
	config.NewSourceFile(logr.New(sink{}), os.Args[1], "node", interval, updates)
	for update := range updates {
		show(set{update.(kubetypes.PodUpdate).Pods})
	}
}
