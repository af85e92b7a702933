// The part of etcdutl that the tests need: `etcdutl snapshot restore` and `etcdutl snapshot status`.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
)

func main() {
	root := &cobra.Command{Use: "etcdutl", SilenceUsage: true}
	// The subcommands read this flag of the real root command.
	root.PersistentFlags().StringVarP(&etcdutl.OutputFormat, "write-out", "w", "simple", "the output format")
	root.AddCommand(etcdutl.NewSnapshotCommand())
	if root.Execute() != nil {
		os.Exit(1)
	}
}
