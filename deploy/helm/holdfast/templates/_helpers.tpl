{{/* A name that a configuration gives, [NAMESPACE/]NAME, noted under its namespace and resource; "*" stands for all. */}}
{{- define "holdfast.note" -}}
{{- $namespace := .namespace }}{{ $name := .name }}
{{- if contains "/" .name }}{{ $namespace = splitList "/" .name | first }}{{ $name = splitList "/" .name | last }}{{ end }}
{{- $resources := get .found $namespace | default dict }}
{{- $_ := set $resources .resource (append (get $resources .resource | default list) $name) }}
{{- $_ := set .found $namespace $resources }}
{{- end }}

{{/* The name of this release's objects: "holdfast" for the release "holdfast", RELEASE-holdfast for another. */}}
{{- define "holdfast.fullname" -}}
{{- $name := .Values.nameOverride | default .Chart.Name }}
{{- if .Values.fullnameOverride }}{{ $name = .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ $name = .Release.Name }}
{{- else }}{{ $name = printf "%s-%s" .Release.Name $name }}{{ end }}
{{- $name | trunc 63 | trimSuffix "-" }}
{{- end }}

{{/* The name of objects of no namespace: two releases in two namespaces may have one name. */}}
{{- define "holdfast.clusterName" -}}
{{- $name := include "holdfast.fullname" . }}
{{- if eq $name .Release.Namespace }}{{ $name }}{{ else }}{{ .Release.Namespace }}.{{ $name }}{{ end }}
{{- end }}

{{- define "holdfast.serviceAccount" -}}
{{- if and (not .Values.serviceAccount.create) (not .Values.serviceAccount.name) }}
{{- fail "serviceAccount.name is needed where serviceAccount.create is false" }}
{{- end }}
{{- .Values.serviceAccount.name | default (include "holdfast.fullname" .) }}
{{- end }}

{{/* The labels that select this release's pods. They can never change: a DaemonSet's selector is immutable. */}}
{{- define "holdfast.selectorLabels" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default .Chart.Name | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

{{- define "holdfast.labels" -}}
{{ include "holdfast.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{/* The capabilities that the container gets, as JSON. */}}
{{- define "holdfast.capabilities" -}}
{{- $capabilities := list }}
{{- if .Values.otherOwners }}{{ $capabilities = concat $capabilities (list "CHOWN" "FOWNER" "DAC_OVERRIDE") }}{{ end }}
{{- if .Values.signals }}{{ $capabilities = append $capabilities "KILL" }}{{ end }}
{{- toJson $capabilities }}
{{- end }}

{{/* The image of a container, and when kubelet pulls it. */}}
{{- define "holdfast.image" -}}
{{- with .Values.image -}}
image: {{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- with .pullPolicy }}
imagePullPolicy: {{ . }}
{{- end }}
{{- end }}
{{- end }}
