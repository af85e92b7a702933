// Command library-go runs the static-pod commands of OpenShift's library-go as they are, for the recorder beside it.
//
// The operators' compiled-in values come from the environment here: whether the pod is ready (READY: "true", "false" or "error"), and which
// objects the cert-syncer keeps (SECRETS, OPTIONAL_SECRETS, CONFIGMAPS, OPTIONAL_CONFIGMAPS: names with commas).
package main

import (
	"context"
	"errors"
	"os"
	"strings"

	operatorv1 "github.com/openshift/client-go/operator/clientset/versioned/typed/operator/v1"
	"github.com/openshift/library-go/pkg/operator/staticpod/certsyncpod"
	"github.com/openshift/library-go/pkg/operator/staticpod/controller/installer"
	"github.com/openshift/library-go/pkg/operator/staticpod/installerpod"
	"github.com/openshift/library-go/pkg/operator/staticpod/prune"
	"github.com/openshift/library-go/pkg/operator/staticpod/startupmonitor"
	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
)

type check struct{}

func (check) IsReady(context.Context, int) (bool, string, string, error) {
	switch os.Getenv("READY") {
	case "true":
		return true, "", "", nil
	case "error":
		return false, "", "", errors.New("the check cannot ask")
	default:
		// As holdfast says it of `--ready-exec=false`, so that annotations can be compared.
		return false, "NotReady", "command: exit code 1", nil
	}
}

func operators(config *rest.Config) (operatorv1.KubeAPIServerInterface, error) {
	client, err := operatorv1.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return client.KubeAPIServers(), nil
}

func objects(required, optional string) []installer.UnrevisionedResource {
	var found []installer.UnrevisionedResource
	for _, variable := range []string{required, optional} {
		for _, name := range strings.FieldsFunc(os.Getenv(variable), func(r rune) bool { return r == ',' }) {
			found = append(found, installer.UnrevisionedResource{Name: name, Optional: variable == optional})
		}
	}
	return found
}

func main() {
	root := &cobra.Command{Use: "library-go"}
	root.AddCommand(
		installerpod.NewInstaller(context.Background()),
		prune.NewPrune(),
		startupmonitor.NewCommand(check{}, operators),
		certsyncpod.NewCertSyncControllerCommand(
			objects("CONFIGMAPS", "OPTIONAL_CONFIGMAPS"), objects("SECRETS", "OPTIONAL_SECRETS"),
		),
	)
	if root.Execute() != nil {
		os.Exit(1)
	}
}
