// Command publish carries out the orders on standard input, as ../driver.ts says, through library-go's own atomic directory. It is laid
// into a checkout for the build (`go build -overlay`), with ../go/publish/orders.go, since that package is internal.
package main

import (
	"io"

	"k8s.io/klog/v2"

	"github.com/openshift/library-go/pkg/operator/staticpod/internal/atomicdir"
	"github.com/openshift/library-go/pkg/operator/staticpod/internal/atomicdir/types"
)

func main() {
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	takeOrders(map[string]publisher{"library-go": syncDirectory})
}

func syncDirectory(target string, names []string, files map[string][]byte) error {
	content := map[string]types.File{}
	for _, name := range names {
		content[name] = types.File{Content: files[name], Perm: 0o600}
	}
	return atomicdir.Sync(target, 0o755, target+".staging", content)
}
