{{/* Whether .path is .directory or below it. */}}
{{- define "holdfast.within" -}}
{{- if hasPrefix (printf "%s/" .directory) (printf "%s/" .path) }}yes{{ end }}
{{- end }}

{{/*
Compares the mounts with the configuration, and fails with each mistake and its place: what the kernel or kubelet would refuse on
each node is refused here.
*/}}
{{- define "holdfast.checkMounts" -}}
{{- $found := list }}
{{- $mounts := list
  (dict "place" "the configuration" "name" "configuration" "path" "/etc/holdfast")
  (dict "place" "configuration.stateDirectory" "name" "state" "path" (.Values.configuration.stateDirectory | default "/var/lib/holdfast" | clean)) }}
{{- if .Values.seccomp }}{{ $mounts = append $mounts (dict "place" "seccomp" "name" "seccomp" "path" "/var/lib/kubelet/seccomp") }}{{ end }}
{{- range $mounts }}
{{- if not (isAbs .path) }}{{ $found = append $found (printf "%s %q: must be absolute: the pod has it at the node's own path" .place .path) }}{{ end }}
{{- end }}
{{- range $kind := list "parents" "readOnly" }}
{{- range $index, $one := get $.Values $kind }}
{{- $place := printf "%s[%d]" $kind $index }}
{{- $path := $one.path | clean }}
{{- if ne $path $one.path }}{{ $found = append $found (printf "%s.path %q: write it as %q" $place $one.path $path) }}{{ end }}
{{- if eq $path "/" }}{{ $found = append $found (printf "%s.path \"/\": is the whole node; mount the directories above the targets" $place) }}{{ end }}
{{- range $other := $mounts }}
{{- if eq $other.name $one.name }}
{{- $found = append $found (printf "%s.name %q: is %s; choose another" $place $one.name (ternary "a volume of the chart" "the name of another volume" (has $one.name (list "configuration" "state" "seccomp")))) }}
{{- end }}
{{- if eq $other.path $path }}
{{- $found = append $found (printf "%s.path %q: is mounted already, as the volume %s" $place $path $other.name) }}
{{- else if and $other.parent (eq $kind "parents") (or (include "holdfast.within" (dict "path" $path "directory" $other.path)) (include "holdfast.within" (dict "path" $other.path "directory" $path))) }}
{{- $found = append $found (printf "%s.path %q: overlaps %s.path %q: both sides of an exchange must lie in one mount; keep one of them" $place $path $other.place $other.path) }}
{{- end }}
{{- end }}
{{- $mounts = append $mounts (dict "place" $place "name" $one.name "path" $path "parent" (eq $kind "parents")) }}
{{- end }}
{{- end }}
{{- range $index, $directory := .Values.configuration.directories }}
{{- range $field := list "path" "movedFrom" }}
{{- with get $directory $field }}
{{- $place := printf "configuration.directories[%d].%s %q" $index $field . }}
{{- $path := clean . }}
{{- if not (isAbs $path) }}
{{- $found = append $found (printf "%s: must be absolute: the pod has it at the node's own path" $place) }}
{{- else }}
{{- $nearest := dict "path" "" }}
{{- $above := "" }}
{{- range $mount := $mounts }}
{{- if include "holdfast.within" (dict "path" $mount.path "directory" $path) }}
{{- $above = $mount.path }}
{{- $found = append $found (printf "%s: %s mounts %q, which is at or below it; mount %s: the kernel cannot exchange a mount point" $place $mount.place $mount.path (dir $path)) }}
{{- else if and (include "holdfast.within" (dict "path" $path "directory" $mount.path)) (gt (len $mount.path) (len $nearest.path)) }}
{{- $nearest = $mount }}
{{- end }}
{{- end }}
{{- if and $nearest.path (not $nearest.parent) }}
{{- $found = append $found (printf "%s: lies on the mount %s (%s), which is no parent" $place $nearest.place $nearest.path) }}
{{- else if not (or $nearest.path $above) }}
{{- $parent := dir $path }}
{{- $name := regexReplaceAll "[^a-z0-9]+" (base $parent | lower) "-" | trimAll "-" | default "root" }}
{{- $found = append $found (printf "%s: no entry of parents is above it; add { name: %s, path: %s }" $place $name $parent) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $kubeconfig := dig "kubernetes" "kubeconfig" "" (.Values.configuration.source | default dict) }}
{{- $files := dig "files" "path" "" (.Values.configuration.source | default dict) }}
{{- range $place, $path := dict "kubernetes.kubeconfig" $kubeconfig "files.path" $files }}
{{- if $path }}
{{- $there := false }}
{{- range $mount := $mounts }}{{ if include "holdfast.within" (dict "path" (clean $path) "directory" $mount.path) }}{{ $there = true }}{{ end }}{{ end }}
{{- if not $there }}{{ $found = append $found (printf "configuration.source.%s %q: no entry of readOnly or parents has it" $place $path) }}{{ end }}
{{- end }}
{{- end }}
{{- if $found }}{{ fail (printf "\n%s" (join "\n" $found)) }}{{ end }}
{{- end }}
