{{/* A name that a configuration gives, [NAMESPACE/]NAME, noted under its namespace and resource; "*" stands for all. */}}
{{- define "holdfast.note" -}}
{{- $namespace := .namespace }}{{ $name := .name }}
{{- if contains "/" .name }}{{ $namespace = splitList "/" .name | first }}{{ $name = splitList "/" .name | last }}{{ end }}
{{- $resources := get .found $namespace | default dict }}
{{- $_ := set $resources .resource (append (get $resources .resource | default list) $name) }}
{{- $_ := set .found $namespace $resources }}
{{- end }}

{{- define "holdfast.labels" -}}
app.kubernetes.io/name: holdfast
{{- end }}
