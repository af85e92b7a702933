// Command kubelet-decode runs kubelet's own source of static pods on a directory, and prints what kubelet makes of the manifests
// there: one JSON object for each file that it refuses, `{"path": …, "error": …}`, and one for each set of pods that it would run,
// `{"pods": […]}`. The directory is read when the program starts, and again after each interval (Go's form, such as 100ms).
//
// With `kubeconfigs` or `objects` for the interval, it prints what client-go's loader makes of each file as a kubeconfig, or kubectl's
// of each as a list of objects, once: `{"path": …, "error": …, "value": …}`.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/capabilities"
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

// A file's reading: the value that its reader makes of it, or why it makes none.
type reading struct {
	Path  string `json:"path"`
	Error string `json:"error,omitempty"`
	Value any    `json:"value,omitempty"`
}

func showFiles(directory string, read func(string) (any, error)) {
	entries, err := os.ReadDir(directory)
	if err != nil {
		panic(err)
	}
	for _, entry := range entries {
		path := filepath.Join(directory, entry.Name())
		value, err := read(path)
		found := reading{Path: path, Value: value}
		if err != nil {
			found.Error = err.Error()
		}
		show(found)
	}
}

// As kubectl and kubelet load it (clientcmd.ClientConfigLoadingRules), but for the settings of flags.
func readKubeconfig(path string) (any, error) {
	loaded, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, err
	}
	settings, err := clientcmd.NewNonInteractiveClientConfig(
		*loaded, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"server": settings.Host, "token": settings.BearerToken, "ca": settings.CAData, "certificate": settings.CertData,
	}, nil
}

// As kubectl reads what it applies (cli-runtime's StreamVisitor), and then the types of the objects.
func readObjects(path string) (any, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
	objects := []any{}
	for {
		raw := runtime.RawExtension{}
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if len(raw.Raw) == 0 || string(raw.Raw) == "null" {
			continue
		}
		object, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), raw.Raw)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func main() {
	switch os.Args[2] {
	case "kubeconfigs":
		showFiles(os.Args[1], readKubeconfig)
		return
	case "objects":
		showFiles(os.Args[1], readObjects)
		return
	}
	// As kubelet itself does (cmd/kubelet/app, RunKubelet).
	capabilities.Initialize(capabilities.Capabilities{AllowPrivileged: true})
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
