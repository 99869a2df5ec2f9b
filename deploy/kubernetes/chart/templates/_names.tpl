{{- define "throng.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "throng.labels" -}}
app.kubernetes.io/name: throng
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "throng.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "throng.secret" -}}
{{- if .Values.nats.enabled -}}
{{ include "throng.name" . }}-nats
{{- else -}}
{{ required "existingSecret is required where nats.enabled is false" .Values.existingSecret }}
{{- end -}}
{{- end }}

{{/* Of every pod: nobody, without privileges. */}}
{{- define "throng.pod" -}}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- define "throng.user" -}}
runAsNonRoot: true
runAsUser: 65534
runAsGroup: 65534
fsGroup: 65534
{{- end }}

{{- define "throng.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
