// Command go-readings reads inputs as the Go code does that Kubernetes uses, for a comparison with holdfast's own readers. Each line of
// standard input is `READER BASE64`; the answer is one line of JSON, `{"error": …}` or `{"value": …}`. A panic of a reader is an error.
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/moby/sys/mountinfo"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
)

type answer struct {
	Error string `json:"error,omitempty"`
	Value any    `json:"value,omitempty"`
}

var readers = map[string]func([]byte) (any, error){
	"selector":   readSelector,
	"duration":   readDuration,
	"pem":        readPem,
	"bundle":     readBundle,
	"pair":       readPair,
	"manifest":   readManifest,
	"kubeconfig": readKubeconfig,
	"mountinfo":  readMountinfo,
	"dbus":       readMessage,
}

// Sets of labels that a selector is tried on; test/fuzz/targets/selectors.ts has the same.
var sets = []labels.Set{
	{},
	{"app": "web"},
	{"app": "db", "tier": ""},
	{"in": "notin", "k8s.io/a": "b"},
}

func readSelector(input []byte) (any, error) {
	selector, err := labels.Parse(string(input))
	if err != nil {
		return nil, err
	}
	selected := []bool{}
	for _, set := range sets {
		selected = append(selected, selector.Matches(set))
	}
	return selected, nil
}

func readDuration(input []byte) (any, error) {
	duration, err := time.ParseDuration(string(input))
	return duration.Nanoseconds(), err
}

func readPem(input []byte) (any, error) {
	blocks := []string{}
	for rest := input; ; {
		block, after := pem.Decode(rest)
		if block == nil {
			return blocks, nil
		}
		sum := sha256.Sum256(block.Bytes)
		blocks = append(blocks, block.Type+" "+hex.EncodeToString(sum[:]))
		rest = after
	}
}

// The certificates of a bundle, as client-go and kube-apiserver read one.
func readBundle(input []byte) (any, error) {
	certificates, err := cert.ParseCertsPEM(input)
	found := []any{}
	for _, one := range certificates {
		sum := sha256.Sum256(one.Raw)
		found = append(found, []any{hex.EncodeToString(sum[:]), one.NotBefore.Unix(), one.NotAfter.Unix()})
	}
	return found, err
}

// A server's certificate and its key, of one file.
func readPair(input []byte) (any, error) {
	_, err := tls.X509KeyPair(input, input)
	return err == nil, err
}

// As kubelet's file source (pkg/kubelet/config/common.go).
func readManifest(input []byte) (any, error) {
	value, err := yaml.ToJSON(input)
	return json.RawMessage(value), err
}

func readKubeconfig(input []byte) (any, error) {
	loaded, err := clientcmd.Load(input)
	if err != nil {
		return nil, err
	}
	settings, err := clientcmd.NewNonInteractiveClientConfig(*loaded, "", &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, err
	}
	return map[string]any{"server": settings.Host, "token": settings.BearerToken}, nil
}

func readMountinfo(input []byte) (any, error) {
	found, err := mountinfo.GetMountsFromReader(bytes.NewReader(input), nil)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("%d mounts", len(found))
	}
	mount := found[0]
	return map[string]any{
		"id": mount.ID, "device": fmt.Sprintf("%d:%d", mount.Major, mount.Minor), "root": mount.Root, "mountPoint": mount.Mountpoint,
		"type": mount.FSType, "source": mount.Source, "options": mount.Options + "," + mount.VFSOptions, "optional": mount.Optional,
	}, nil
}

func readMessage(input []byte) (any, error) {
	// It takes as much memory at once as a length says.
	length := binary.BigEndian.Uint32
	if len(input) > 0 && input[0] == 'l' {
		length = binary.LittleEndian.Uint32
	}
	for at := 4; at+4 <= len(input); at += 4 {
		if length(input[at:]) > 1<<20 {
			return nil, errors.New("it may hold a length beyond its end")
		}
	}
	message, err := dbus.DecodeMessage(bytes.NewReader(input))
	if err != nil {
		return nil, err
	}
	header := func(field dbus.HeaderField) any {
		if found, isThere := message.Headers[field]; isThere {
			return found.Value()
		}
		return nil
	}
	signature, _ := header(dbus.FieldSignature).(dbus.Signature)
	return map[string]any{
		"type": message.Type, "answers": header(dbus.FieldReplySerial), "path": header(dbus.FieldPath), "member": header(dbus.FieldMember),
		"error": header(dbus.FieldErrorName), "sender": header(dbus.FieldSender), "body": message.Body, "signature": signature.String(),
	}, message.IsValid()
}

func read(reader string, input []byte) (found answer) {
	defer func() {
		if problem := recover(); problem != nil {
			found = answer{Error: fmt.Sprint("panic: ", problem)}
		}
	}()
	value, err := readers[reader](input)
	if err != nil {
		// Many of them quote the whole input.
		return answer{Error: fmt.Sprintf("%.200s", err.Error())}
	}
	return answer{Value: value}
}

func main() {
	questions := bufio.NewReader(os.Stdin)
	answers := bufio.NewWriter(os.Stdout)
	for {
		line, err := questions.ReadString('\n')
		if err != nil {
			return
		}
		reader, encoded, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		input, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil || readers[reader] == nil {
			panic("not a question: " + reader)
		}
		found, err := json.Marshal(read(reader, input))
		if err != nil {
			// Values that JSON cannot hold.
			found, _ = json.Marshal(answer{Error: err.Error()})
		}
		answers.Write(append(found, '\n'))
		if questions.Buffered() == 0 {
			answers.Flush()
		}
	}
}
