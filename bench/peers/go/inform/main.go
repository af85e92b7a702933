// Command inform keeps the Secrets of a namespace as directories with client-go's informer, the way an operator would write it in an
// afternoon: each event is written file by file with renameio. Arguments: kubeconfig, namespace, directory, and the names of the
// Secrets, by commas; all of the namespace where there are none.
package main

import (
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	kubeconfig, namespace, directory := os.Args[1], os.Args[2], os.Args[3]
	wanted := strings.FieldsFunc(os.Args[4], func(r rune) bool { return r == ',' })
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		log.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	write := func(object any) {
		secret, found := object.(*corev1.Secret)
		if !found || len(wanted) > 0 && !slices.Contains(wanted, secret.Name) {
			return
		}
		target := filepath.Join(directory, secret.Name)
		if err := os.MkdirAll(target, 0o755); err != nil {
			log.Fatal(err)
		}
		for name, content := range secret.Data {
			if err := renameio.WriteFile(filepath.Join(target, name), content, 0o600); err != nil {
				log.Fatal(err)
			}
		}
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(namespace))
	informer := factory.Core().V1().Secrets().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    write,
		UpdateFunc: func(_, object any) { write(object) },
	}); err != nil {
		log.Fatal(err)
	}
	forever := make(chan struct{})
	factory.Start(forever)
	<-forever
}
