/** Manifests as the programs that set up control planes write them: each has what its author's manifests have, and reads like them. */

/** Each has a line `  name: …` in its metadata. */
export const corpus: Readonly<Record<string, string>> = {
  'kube-vip, as its own generator prints it': `apiVersion: v1
kind: Pod
metadata:
  creationTimestamp: null
  name: kube-vip
  namespace: kube-system
spec:
  containers:
  - args:
    - manager
    env:
    - name: vip_arp
      value: "true"
    - name: port
      value: "6443"
    - name: vip_nodename
      valueFrom:
        fieldRef:
          fieldPath: spec.nodeName
    - name: vip_interface
      value: eth0
    - name: vip_cidr
      value: "32"
    - name: cp_enable
      value: "true"
    - name: vip_leaseduration
      value: "5"
    - name: address
      value: 192.168.0.40
    - name: prometheus_server
      value: :2112
    image: ghcr.io/kube-vip/kube-vip:v0.9.1
    imagePullPolicy: IfNotPresent
    name: kube-vip
    resources: {}
    securityContext:
      capabilities:
        add:
        - NET_ADMIN
        - NET_RAW
        drop:
        - ALL
    volumeMounts:
    - mountPath: /etc/kubernetes/admin.conf
      name: kubeconfig
  hostAliases:
  - hostnames:
    - kubernetes
    ip: 127.0.0.1
  hostNetwork: true
  volumes:
  - hostPath:
      path: /etc/kubernetes/admin.conf
    name: kubeconfig
status: {}
`,
  'a proxy, as kubespray templates it': `apiVersion: v1
kind: Pod
metadata:
  name: nginx-proxy
  namespace: kube-system
  labels:
    addonmanager.kubernetes.io/mode: Reconcile
    k8s-app: kube-nginx
  annotations:
    nginx-cfg-checksum: "5b4d1c6d0f9e"   # of its configuration
spec:
  hostNetwork: true
  dnsPolicy: ClusterFirstWithHostNet
  nodeSelector:
    kubernetes.io/os: linux
  priorityClassName: system-node-critical
  containers:
  - name: nginx-proxy
    image: docker.io/library/nginx:1.28.0-alpine
    imagePullPolicy: IfNotPresent
    resources:
      requests:
        cpu: 25m
        memory: 32M
    livenessProbe:
      httpGet:
        path: /healthz
        port: 8081
    readinessProbe:
      httpGet:
        path: /healthz
        port: 8081
    volumeMounts:
    - mountPath: /etc/nginx
      name: etc-nginx
      readOnly: true

  volumes:
  - name: etc-nginx
    hostPath:
      path: /etc/nginx
`,
  'etcd, as RKE2 writes it': `apiVersion: v1
kind: Pod
metadata:
  annotations:
    etcd.k3s.io/initial: '{"initial-advertise-peer-urls":"https://10.0.0.4:2380","initial-cluster-state":"new"}'
  creationTimestamp: null
  labels:
    component: etcd
    tier: control-plane
  name: etcd
  namespace: kube-system
  uid: 2b6a4e01d3a94c7c8f7b2a0b6a1d4c55
spec:
  containers:
  - args:
    - --config-file=/var/lib/rancher/rke2/server/db/etcd/config
    command:
    - etcd
    env:
    - name: FILE_HASH
      value: 0e6b1d7dd8c1ec1e87b6a2f1f7a4b7f2c45d09f6cb0ce33c1f9a1d7ae7f2c1de
    - name: NO_PROXY
      value: .svc,.cluster.local,10.42.0.0/16
    image: index.docker.io/rancher/hardened-etcd:v3.6.5-k3s1
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet:
        host: localhost
        path: /health?serializable=true
        port: 2381
        scheme: HTTP
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    name: etcd
    ports:
    - containerPort: 2379
      name: client
      protocol: TCP
    - containerPort: 2380
      name: peer
      protocol: TCP
    resources:
      requests:
        cpu: 200m
        memory: 512Mi
    securityContext:
      privileged: false
    startupProbe:
      exec:
        command:
        - sh
        - -c
        - |
          etcdctl endpoint health \\
            --endpoints=https://127.0.0.1:2379
      failureThreshold: 24
      periodSeconds: 10
    volumeMounts:
    - mountPath: /var/lib/rancher/rke2/server/db/etcd
      name: dir0
    - mountPath: /var/lib/rancher/rke2/server/tls/etcd/server-client.crt
      name: file0
      readOnly: true
  hostNetwork: true
  priorityClassName: system-cluster-critical
  securityContext:
    seLinuxOptions:
      type: rke2_service_db_t
  volumes:
  - hostPath:
      path: /var/lib/rancher/rke2/server/db/etcd
      type: DirectoryOrCreate
    name: dir0
  - hostPath:
      path: /var/lib/rancher/rke2/server/tls/etcd/server-client.crt
      type: File
    name: file0
status: {}
`,
  'an API server, as an operator of OpenShift renders it': `apiVersion: v1
kind: Pod
metadata:
  namespace: openshift-kube-apiserver
  name: kube-apiserver
  annotations:
    kubectl.kubernetes.io/default-container: kube-apiserver
    target.workload.openshift.io/management: '{"effect": "PreferredDuringScheduling"}'
  labels:
    app: openshift-kube-apiserver
    apiserver: "true"
    revision: "7"
spec:
  initContainers:
    - name: setup
      terminationMessagePolicy: FallbackToLogsOnError
      image: quay.io/openshift/origin-hyperkube:latest
      imagePullPolicy: IfNotPresent
      volumeMounts:
        - mountPath: /var/log/kube-apiserver
          name: audit-dir
      command: ['/usr/bin/timeout', '100', '/bin/bash', '-ec']
      args:
        - |
          echo "Fixing audit permissions ..."
          chmod 0700 /var/log/kube-apiserver && touch /var/log/kube-apiserver/audit.log && chmod 0600 /var/log/kube-apiserver/*
      resources: {requests: {memory: 50Mi, cpu: 5m}}
      securityContext: {privileged: true}
  containers:
  - name: kube-apiserver
    image: quay.io/openshift/origin-hyperkube:latest
    imagePullPolicy: IfNotPresent
    terminationMessagePolicy: FallbackToLogsOnError
    command: ["/bin/bash", "-ec"]
    args:
        - |
          if [ -f /etc/kubernetes/static-pod-certs/configmaps/trusted-ca-bundle/ca-bundle.crt ]; then
            echo "Copying system trust bundle ..."
          fi
          exec watch-termination --termination-touch-file=/var/log/kube-apiserver/.terminating \\
            --graceful-termination-duration=135s -- \\
            hyperkube kube-apiserver --openshift-config=/etc/kubernetes/static-pod-resources/configmaps/config/config.yaml -v=2
    resources:
      requests:
        memory: 1Gi
        cpu: 265m
    ports:
    - containerPort: 6443
    volumeMounts:
    - {mountPath: /etc/kubernetes/static-pod-resources, name: resource-dir}
    - {mountPath: /etc/kubernetes/static-pod-certs, name: cert-dir}
    - {mountPath: /var/log/kube-apiserver, name: audit-dir}
    livenessProbe:
      httpGet:
        scheme: HTTPS
        port: 6443
        path: livez?exclude=etcd
      timeoutSeconds: 10
      periodSeconds: 10
      successThreshold: 1
      failureThreshold: 3
    env:
      - name: POD_NAME
        valueFrom:
          fieldRef:
            fieldPath: metadata.name
      - name: STATIC_POD_VERSION # Avoid using 'REVISION' here otherwise it will be substituted
        value: "7"
      - name: GOGC
        value: "100"
    securityContext:
      privileged: true
  - name: kube-apiserver-cert-syncer
    env:
    - name: POD_NAMESPACE
      valueFrom:
        fieldRef:
          fieldPath: metadata.namespace
    image: quay.io/openshift/origin-cluster-kube-apiserver-operator:latest
    command: ["cluster-kube-apiserver-operator", "cert-syncer"]
    args:
    - --kubeconfig=/etc/kubernetes/static-pod-resources/configmaps/kube-apiserver-cert-syncer-kubeconfig/kubeconfig
    - --destination-dir=/etc/kubernetes/static-pod-certs
    volumeMounts:
    - {mountPath: /etc/kubernetes/static-pod-certs, name: cert-dir}
  terminationGracePeriodSeconds: 135
  hostNetwork: true
  priorityClassName: system-node-critical
  tolerations:
  - operator: "Exists"
  volumes:
  - hostPath:
      path: /etc/kubernetes/static-pod-resources/kube-apiserver-pod-7
    name: resource-dir
  - hostPath:
      path: /etc/kubernetes/static-pod-resources/kube-apiserver-certs
    name: cert-dir
  - hostPath:
      path: /var/log/kube-apiserver
    name: audit-dir
`,
  'much, by hand': `# A proxy of our own.
---
apiVersion: v1
kind: "Pod"
metadata:
  name: proxy
  labels: {app: proxy, 'tier': edge}
  annotations:
    note: >-
      Changed by hand: see
      the page of the team.
spec:
  restartPolicy: Always
  shareProcessNamespace: false
  securityContext: {runAsUser: 65534, runAsNonRoot: yes, fsGroup: 065534, sysctls: [{name: net.ipv4.ip_local_port_range, value: "1024 65535"}]}
  dnsConfig: {nameservers: [10.0.0.10], options: [{name: ndots, value: "2"}]}
  containers:
  - &proxy
    name: proxy
    image: "haproxy:3.2"
    ports: [{containerPort: 8443, hostPort: 8443, name: https}, {containerPort: 9090}]
    env: &env
    - {name: TZ, value: UTC}
    - {name: LIMIT, valueFrom: {resourceFieldRef: {containerName: proxy, resource: limits.cpu, divisor: 1m}}}
    resources: {limits: {cpu: 1.5, memory: 1Gi}, requests: {cpu: 500m}}
    lifecycle: {preStop: {exec: {command: [sleep, "5"]}}}
    livenessProbe: {tcpSocket: {port: https}, initialDelaySeconds: 5}
    volumeMounts: [{name: scratch, mountPath: /tmp}, {name: etc, mountPath: /usr/local/etc, readOnly: true, subPath: haproxy}]
  - <<: *proxy
    name: exporter
    image: exporter:1
    ports: [{containerPort: 9101}]
    livenessProbe:
  volumes:
  - {name: scratch, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
  - {name: etc, hostPath: {path: /etc, type: Directory}}
  - name: info
    downwardAPI: {defaultMode: 0644, items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}
`,
}
