// What runs in the pods of the node tests. The standard library is all that it needs.
module holdfast.dev/test/node/workload

go 1.25.0
