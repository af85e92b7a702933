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
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubernetes/pkg/capabilities"
	"k8s.io/kubernetes/pkg/kubelet/config"
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
	loaded, err := (&clientcmd.ClientConfigLoadingRules{ExplicitPath: path}).Load()
	if err != nil {
		return nil, err
	}
	settings, err := clientcmd.NewNonInteractiveClientConfig(
		*loaded, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return map[string]any{
		"server": settings.Host, "serverName": settings.ServerName, "insecure": settings.Insecure,
		"token": settings.BearerToken, "tokenFile": settings.BearerTokenFile,
		"username": settings.Username, "password": settings.Password,
		"ca": string(settings.CAData), "caFile": settings.CAFile,
		"certificate": string(settings.CertData), "certificateFile": settings.CertFile,
		"key": string(settings.KeyData), "keyFile": settings.KeyFile,
		"impersonated": settings.Impersonate.UserName, "hasExec": settings.ExecProvider != nil,
	}, nil
}

// As kubectl reads what it applies (cli-runtime's StreamVisitor), and then the types of the objects. Other kinds are passed over.
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
		if objects, err = appendObjects(objects, raw.Raw); err != nil {
			return nil, err
		}
	}
}

func appendObjects(objects []any, raw []byte) ([]any, error) {
	decoded, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), raw)
	if runtime.IsNotRegisteredError(err) {
		return objects, nil
	}
	if err != nil {
		return nil, err
	}
	switch object := decoded.(type) {
	case *v1.List:
		for _, item := range object.Items {
			if objects, err = appendObjects(objects, item.Raw); err != nil {
				return nil, err
			}
		}
	case *v1.SecretList:
		for _, item := range object.Items {
			objects = appendSecret(objects, &item)
		}
	case *v1.ConfigMapList:
		for _, item := range object.Items {
			objects = appendConfigMap(objects, &item)
		}
	case *v1.Secret:
		objects = appendSecret(objects, object)
	case *v1.ConfigMap:
		objects = appendConfigMap(objects, object)
	}
	return objects, nil
}

func described(kind string, object *metav1.ObjectMeta, data map[string][]byte) map[string]any {
	return map[string]any{
		"kind": kind, "namespace": object.Namespace, "name": object.Name, "labels": object.Labels, "data": data,
	}
}

// The API server writes stringData over data (pkg/apis/core/v1, Convert_v1_Secret_To_core_Secret).
func appendSecret(objects []any, secret *v1.Secret) []any {
	data := map[string][]byte{}
	maps.Copy(data, secret.Data)
	for key, text := range secret.StringData {
		data[key] = []byte(text)
	}
	return append(objects, described("Secret", &secret.ObjectMeta, data))
}

func appendConfigMap(objects []any, object *v1.ConfigMap) []any {
	data := map[string][]byte{}
	maps.Copy(data, object.BinaryData)
	for key, text := range object.Data {
		data[key] = []byte(text)
	}
	return append(objects, described("ConfigMap", &object.ObjectMeta, data))
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
	showPods(config.NewSourceFile, os.Args[1], interval)
}

// Before 1.37 an update is an interface that holds a PodUpdate; then it is a type that kubelet's package keeps to itself.
func showPods[T any](
	source func(logr.Logger, string, types.NodeName, time.Duration, chan<- T), directory string, interval time.Duration,
) {
	updates := make(chan T)
	source(logr.New(sink{}), directory, "node", interval, updates)
	for update := range updates {
		show(set{reflect.ValueOf(any(update)).FieldByName("Pods").Interface().([]*v1.Pod)})
	}
}
