package main

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// pod is one that runs here, as a process in a network namespace.
type pod struct {
	namespace, name string
	labels          map[string]string
	ip, space       string
	folder, log     string
	hosts           string
	process         *exec.Cmd
	ended           chan error
	exit            *int
	began           time.Time
	// When the process was asked to end, and the status that was reported last.
	asked    time.Time
	reported string
	reason   string
}

func newPod(folder string, object *v1.Pod, nth int) *pod {
	p := &pod{
		namespace: object.Namespace,
		name:      object.Name,
		labels:    object.Labels,
		ip:        fmt.Sprintf("10.99.%d.%d", 1+nth/250, 1+nth%250),
		space:     fmt.Sprintf("pod%d", nth),
		folder:    filepath.Join(folder, object.Namespace+"."+object.Name),
		began:     time.Now(),
	}
	p.log = filepath.Join(p.folder, "log")
	if err := os.MkdirAll(p.folder, 0o755); err != nil {
		log.Fatal(err)
	}
	p.write("127.0.0.1 localhost\n")
	must("ip", "netns", "add", p.space)
	inside, outside := "eth0", "v"+p.space
	must("ip", "link", "add", outside, "type", "veth", "peer", "name", inside, "netns", p.space)
	must("ip", "link", "set", outside, "master", "pods", "up")
	in := func(words ...string) { must("ip", append([]string{"-n", p.space}, words...)...) }
	in("address", "add", p.ip+"/16", "dev", inside)
	in("link", "set", inside, "up")
	in("link", "set", "lo", "up")
	in("route", "add", "default", "via", "10.99.0.1")
	if context := object.Spec.SecurityContext; context != nil {
		for _, sysctl := range context.Sysctls {
			must("ip", "netns", "exec", p.space, "sysctl", "-q", "-w", sysctl.Name+"="+sysctl.Value)
		}
	}
	return p
}

// step brings the pod nearer to what the API server wants of it, and says how it is.
func (p *pod) step(k *kubelet, object *v1.Pod) {
	select {
	case <-p.ended:
		code := p.process.ProcessState.ExitCode()
		if code < 0 {
			code = 128 + int(p.process.ProcessState.Sys().(syscall.WaitStatus).Signal())
		}
		p.exit, p.ended = &code, nil
		if object.Spec.RestartPolicy == v1.RestartPolicyAlways && object.DeletionTimestamp == nil && p.reason == "" {
			p.exit, p.process = nil, nil
		}
	default:
	}
	limit := object.Spec.ActiveDeadlineSeconds
	if limit != nil && p.exit == nil && time.Since(p.began) > time.Duration(*limit)*time.Second {
		p.reason = "DeadlineExceeded"
		p.end(object)
	}
	if object.DeletionTimestamp != nil {
		p.end(object)
		if p.exit != nil || p.process == nil {
			k.forget(object)
		}
		return
	}
	waiting := ""
	if p.process == nil {
		if err := p.start(k, object); err != nil {
			waiting = err.Error()
		}
	}
	p.report(k, object, waiting)
}

// start runs the container's command.
func (p *pod) start(k *kubelet, object *v1.Pod) error {
	container := object.Spec.Containers[0]
	environment := map[string]string{"PATH": os.Getenv("PATH"), "HOSTNAME": p.name}
	for _, variable := range container.Env {
		value := variable.Value
		if from := variable.ValueFrom; from != nil && from.SecretKeyRef != nil {
			secret, err := k.client.CoreV1().Secrets(p.namespace).Get(context.TODO(), from.SecretKeyRef.Name, meta.GetOptions{})
			if err != nil {
				return err
			}
			value = string(secret.Data[from.SecretKeyRef.Key])
		} else if from != nil && from.FieldRef != nil {
			value = map[string]string{"metadata.name": p.name, "status.podIP": p.ip}[from.FieldRef.FieldPath]
		}
		environment[variable.Name] = value
	}
	mounts, err := p.volumes(k, object)
	if err != nil {
		return err
	}
	words := append(append([]string{}, container.Command...), container.Args...)
	for i, word := range words {
		for name, value := range environment {
			word = strings.ReplaceAll(word, "$("+name+")", value)
		}
		words[i] = word
	}
	script := "mount -t tmpfs tmpfs /run\nmount --bind '" + p.folder + "/hosts' /etc/hosts\n" + mounts + `exec "$@"`
	as := []string{"setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set=-all"}
	if context := object.Spec.SecurityContext; context != nil && context.RunAsUser != nil {
		user := fmt.Sprint(*context.RunAsUser)
		as = append(as, "--reuid", user, "--regid", user, "--clear-groups")
	}
	line := append([]string{"netns", "exec", p.space, "unshare", "--mount", "sh", "-ec", script, "sh"}, append(as, words...)...)
	p.process = exec.Command("ip", line...)
	for name, value := range environment {
		p.process.Env = append(p.process.Env, name+"="+value)
	}
	output, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer output.Close()
	p.process.Stdout, p.process.Stderr = output, output
	if err := p.process.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	p.ended = ended
	go func(process *exec.Cmd) { ended <- process.Wait() }(p.process)
	return nil
}

// volumes makes the directories that are mounted; returns the commands that mount them.
func (p *pod) volumes(k *kubelet, object *v1.Pod) (string, error) {
	for _, volume := range object.Spec.Volumes {
		folder := filepath.Join(p.folder, "volumes", volume.Name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			return "", err
		}
		files := map[string][]byte{}
		switch {
		case volume.Secret != nil:
			secret, err := k.client.CoreV1().Secrets(p.namespace).Get(context.TODO(), volume.Secret.SecretName, meta.GetOptions{})
			if err != nil {
				return "", err
			}
			for key, value := range secret.Data {
				files[key] = value
			}
			if len(volume.Secret.Items) > 0 {
				files = map[string][]byte{}
				for _, item := range volume.Secret.Items {
					files[item.Path] = secret.Data[item.Key]
				}
			}
		case volume.ConfigMap != nil:
			object, err := k.client.CoreV1().ConfigMaps(p.namespace).Get(context.TODO(), volume.ConfigMap.Name, meta.GetOptions{})
			if err != nil {
				return "", err
			}
			for key, value := range object.Data {
				files[key] = []byte(value)
			}
		default:
			// An empty directory, and what a claim would have brought.
			_ = os.Chmod(folder, 0o777)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(folder, name), text, 0o644); err != nil {
				return "", err
			}
		}
	}
	script := ""
	for _, mount := range object.Spec.Containers[0].VolumeMounts {
		from := filepath.Join(p.folder, "volumes", mount.Name)
		if mount.SubPath != "" {
			from = filepath.Join(from, mount.SubPath)
		}
		if !strings.HasPrefix(mount.MountPath, "/run/") {
			return "", fmt.Errorf("the stand-in mounts below /run only: %s", mount.MountPath)
		}
		script += fmt.Sprintf("mkdir -p '%s'\nmount --bind '%s' '%s'\n", mount.MountPath, from, mount.MountPath)
	}
	return script, nil
}

// end asks the process to end, and makes it end when its time is over.
func (p *pod) end(object *v1.Pod) {
	if p.ended == nil {
		return
	}
	grace := 30 * time.Second
	if seconds := object.DeletionGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	if p.asked.IsZero() {
		p.asked = time.Now()
		_ = p.process.Process.Signal(syscall.SIGTERM)
	} else if time.Since(p.asked) > grace {
		_ = p.process.Process.Kill()
	}
}

// report writes the pod's status where it has changed.
func (p *pod) report(k *kubelet, object *v1.Pod, waiting string) {
	began := meta.NewTime(p.began)
	status := v1.PodStatus{PodIP: p.ip, PodIPs: []v1.PodIP{{IP: p.ip}}, HostIP: "127.0.0.1", StartTime: &began, Phase: v1.PodRunning, Reason: p.reason}
	state := v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: began}}
	isReady := p.isReady(object)
	switch {
	case waiting != "":
		status.Phase, isReady = v1.PodPending, false
		state = v1.ContainerState{Waiting: &v1.ContainerStateWaiting{Reason: "CreateContainerConfigError", Message: waiting}}
	case p.exit != nil:
		status.Phase, isReady = v1.PodSucceeded, false
		reason := "Completed"
		if *p.exit != 0 || p.reason != "" {
			status.Phase, reason = v1.PodFailed, "Error"
		}
		state = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: int32(*p.exit), Reason: reason}}
	}
	condition := v1.ConditionFalse
	if isReady {
		condition = v1.ConditionTrue
	}
	for _, kind := range []v1.PodConditionType{v1.PodReady, v1.ContainersReady} {
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: kind, Status: condition})
	}
	for _, kind := range []v1.PodConditionType{v1.PodScheduled, v1.PodInitialized} {
		status.Conditions = append(status.Conditions, v1.PodCondition{Type: kind, Status: v1.ConditionTrue})
	}
	container := object.Spec.Containers[0]
	status.ContainerStatuses = []v1.ContainerStatus{{Name: container.Name, Image: container.Image, State: state, Ready: isReady, Started: &isReady}}
	text := status.String()
	if text == p.reported {
		return
	}
	changed := object.DeepCopy()
	changed.Status = status
	if _, err := k.client.CoreV1().Pods(p.namespace).UpdateStatus(context.TODO(), changed, meta.UpdateOptions{}); err == nil {
		p.reported = text
	}
}

// isReady: the process runs, and takes connections where a probe says so.
func (p *pod) isReady(object *v1.Pod) bool {
	if p.ended == nil {
		return false
	}
	container := object.Spec.Containers[0]
	probe := container.ReadinessProbe
	if probe == nil || probe.TCPSocket == nil {
		return true
	}
	port := probe.TCPSocket.Port.IntValue()
	for _, named := range container.Ports {
		if named.Name == probe.TCPSocket.Port.StrVal {
			port = int(named.ContainerPort)
		}
	}
	connection, err := net.DialTimeout("tcp", net.JoinHostPort(p.ip, fmt.Sprint(port)), time.Second)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}

func (p *pod) matches(service *v1.Service) bool {
	for key, value := range service.Spec.Selector {
		if p.labels[key] != value {
			return false
		}
	}
	return service.Namespace == p.namespace && len(service.Spec.Selector) > 0
}

// write replaces the text of the pod's hosts file, not the file: it is mounted.
func (p *pod) write(hosts string) {
	if hosts == p.hosts {
		return
	}
	p.hosts = hosts
	if err := os.WriteFile(filepath.Join(p.folder, "hosts"), []byte(hosts), 0o644); err != nil {
		log.Fatal(err)
	}
}

// destroy ends what still runs, and removes the namespace.
func (p *pod) destroy() {
	if p.ended != nil {
		_ = p.process.Process.Kill()
		<-p.ended
	}
	_ = exec.Command("ip", "netns", "delete", p.space).Run()
}

func must(program string, words ...string) {
	output, err := exec.Command(program, words...).CombinedOutput()
	if err != nil {
		log.Fatalf("%s %s: %v: %s", program, strings.Join(words, " "), err, bytes.TrimSpace(output))
	}
}
