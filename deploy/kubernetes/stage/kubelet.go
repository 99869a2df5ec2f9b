// A stand-in for the kubelet, for tests: it runs the containers of pods as processes, each pod in a network namespace of its own, with
// what throng's manifests use of pods: commands, environment, secrets, empty directories, sysctls, users, readiness, deadlines, logs, port-forward.
// No image is pulled: a command is looked up on PATH. It runs as root in namespaces of its own (see stage.py).
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"sync"
	"time"

	coordination "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// How often the API server is asked for what there is to do.
const every = 200 * time.Millisecond

type kubelet struct {
	client kubernetes.Interface
	nodes  map[string]bool
	folder string
	port   int
	mu     sync.Mutex
	pods   map[types.UID]*pod
	next   int
}

func main() {
	config := flag.String("kubeconfig", "", "how to reach the API server")
	folder := flag.String("folder", "", "where logs and volumes of pods go")
	nodes := flag.Int("nodes", 3, "how many nodes to be")
	cpu := flag.String("cpu", "8", "processors of each node")
	flag.Parse()
	rest, err := clientcmd.BuildConfigFromFlags("", *config)
	if err != nil {
		log.Fatal(err)
	}
	rest.QPS, rest.Burst = 500, 500
	k := &kubelet{
		client: kubernetes.NewForConfigOrDie(rest),
		nodes:  map[string]bool{},
		folder: *folder,
		pods:   map[types.UID]*pod{},
	}
	k.port = k.serve()
	// With an address of its own: else it has that of a port, and another whenever a pod comes or goes.
	must("ip", "link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
	must("ip", "address", "add", "10.99.0.1/16", "dev", "pods")
	must("ip", "link", "set", "pods", "up")
	for i := range *nodes {
		name := fmt.Sprintf("node-%d", i)
		k.nodes[name] = true
		k.register(name, *cpu)
	}
	go k.renew()
	for {
		k.reconcile()
		time.Sleep(every)
	}
}

// register makes a node of ours known, ready for pods.
func (k *kubelet) register(name, cpu string) {
	resources := v1.ResourceList{
		v1.ResourceCPU:              resource.MustParse(cpu),
		v1.ResourceMemory:           resource.MustParse("64Gi"),
		v1.ResourcePods:             resource.MustParse("110"),
		v1.ResourceEphemeralStorage: resource.MustParse("100Gi"),
	}
	node := &v1.Node{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
	}
	made, err := k.client.CoreV1().Nodes().Create(context.TODO(), node, meta.CreateOptions{})
	if err != nil {
		log.Fatal(err)
	}
	made.Status = v1.NodeStatus{
		Capacity:        resources,
		Allocatable:     resources,
		Conditions:      ready(),
		Addresses:       []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: v1.NodeDaemonEndpoints{KubeletEndpoint: v1.DaemonEndpoint{Port: int32(k.port)}},
	}
	if _, err := k.client.CoreV1().Nodes().UpdateStatus(context.TODO(), made, meta.UpdateOptions{}); err != nil {
		log.Fatal(err)
	}
	seconds, holder, now := int32(40), name, meta.NowMicro()
	lease := &coordination.Lease{
		ObjectMeta: meta.ObjectMeta{Name: name},
		Spec:       coordination.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	if _, err := k.client.CoordinationV1().Leases("kube-node-lease").Create(context.TODO(), lease, meta.CreateOptions{}); err != nil {
		log.Fatal(err)
	}
}

func ready() []v1.NodeCondition {
	now := meta.Now()
	return []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "StandIn", LastHeartbeatTime: now, LastTransitionTime: now}}
}

// renew keeps the nodes' leases.
func (k *kubelet) renew() {
	leases := k.client.CoordinationV1().Leases("kube-node-lease")
	for range time.Tick(5 * time.Second) {
		for name := range k.nodes {
			lease, err := leases.Get(context.TODO(), name, meta.GetOptions{})
			if err != nil {
				continue
			}
			now := meta.NowMicro()
			lease.Spec.RenewTime = &now
			_, _ = leases.Update(context.TODO(), lease, meta.UpdateOptions{})
		}
	}
}

// reconcile starts, stops and reports what the API server has for our nodes.
func (k *kubelet) reconcile() {
	listed, err := k.client.CoreV1().Pods("").List(context.TODO(), meta.ListOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	services, err := k.client.CoreV1().Services("").List(context.TODO(), meta.ListOptions{})
	if err != nil {
		log.Print(err)
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	there := map[types.UID]bool{}
	for i := range listed.Items {
		object := &listed.Items[i]
		if !k.nodes[object.Spec.NodeName] {
			continue
		}
		there[object.UID] = true
		if k.pods[object.UID] == nil {
			if object.DeletionTimestamp != nil || object.Status.Phase == v1.PodSucceeded || object.Status.Phase == v1.PodFailed {
				k.forget(object)
				continue
			}
			k.next++
			k.pods[object.UID] = newPod(k.folder, object, k.next)
			k.names(services.Items)
		}
		k.pods[object.UID].step(k, object)
	}
	for uid, pod := range k.pods {
		if !there[uid] {
			pod.destroy()
			delete(k.pods, uid)
		}
	}
	k.names(services.Items)
}

// forget confirms a deletion: nothing of the pod runs any more.
func (k *kubelet) forget(object *v1.Pod) {
	if object.DeletionTimestamp == nil {
		return
	}
	now := int64(0)
	options := meta.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &meta.Preconditions{UID: &object.UID}}
	_ = k.client.CoreV1().Pods(object.Namespace).Delete(context.TODO(), object.Name, options)
}

// names writes each pod's /etc/hosts: what a cluster's DNS would tell it.
func (k *kubelet) names(services []v1.Service) {
	hosts := "127.0.0.1 localhost\n::1 localhost\n"
	for _, service := range services {
		for _, pod := range k.pods {
			if pod.matches(&service) {
				name, space := service.Name, service.Namespace
				hosts += fmt.Sprintf("%s %s %s.%s %s.%s.svc %s.%s.svc.cluster.local\n", pod.ip, name, name, space, name, space, name, space)
			}
		}
	}
	for _, pod := range k.pods {
		pod.write(hosts)
	}
}

// serve is the port that the API server reaches a kubelet at.
func (k *kubelet) serve() int {
	mux := http.NewServeMux()
	mux.HandleFunc("/portForward/{namespace}/{name}", k.forward)
	mux.HandleFunc("/portForward/{namespace}/{name}/{uid}", k.forward)
	mux.HandleFunc("/containerLogs/{namespace}/{name}/{container}", k.logs)
	listener, port, err := listen()
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(http.Serve(listener, mux)) }()
	return port
}

func (k *kubelet) find(namespace, name string) *pod {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, pod := range k.pods {
		if pod.namespace == namespace && pod.name == name {
			return pod
		}
	}
	return nil
}

func (k *kubelet) logs(w http.ResponseWriter, r *http.Request) {
	pod := k.find(r.PathValue("namespace"), r.PathValue("name"))
	if pod == nil {
		http.Error(w, "no such pod", http.StatusNotFound)
		return
	}
	text, err := os.ReadFile(pod.log)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	_, _ = w.Write(text)
}
