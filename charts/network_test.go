package charts_test

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
)

func TestNetworkPolicyLetsVeleroReachItsControlPlane(t *testing.T) {
	h := newHelm(t)
	private := "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 100.64.0.0/10 fc00::/7"
	for url, want := range map[string]struct {
		cidrs string
		port  int
	}{
		"https://172.18.0.5:6443":          {"172.18.0.5/32", 6443},
		"https://172.18.0.5":               {"172.18.0.5/32", 443},
		"http://127.0.0.1/base":            {"127.0.0.1/32", 80},
		"https://[fd00::1]:6443":           {"fd00::1/128", 6443},
		"https://[fd00::1]/base":           {"fd00::1/128", 443},
		"https://mcp-control-plane:6443":   {private, 6443},
		"https://api.ns.svc/clusters/root": {private, 443},
		"https://api.mcp.example.com:6443": {"", 0}, // public, like everything the rule before allows
	} {
		policy := find[networkingv1.NetworkPolicy](t, h.mustRender(t, overlay(t, server, kubeconfigValue("server: "+strconv.Quote(url)))), "NetworkPolicy", "velero")
		cidrs, port := controlPlaneRule(policy)
		if cidrs != want.cidrs || port != want.port {
			t.Errorf("%s: %q port %d, want %q port %d", url, cidrs, port, want.cidrs, want.port)
		}
	}
}

// controlPlaneRule is what the policy allows beyond DNS and public addresses.
func controlPlaneRule(policy networkingv1.NetworkPolicy) (cidrs string, port int) {
	if len(policy.Spec.Egress) < 3 {
		return "", 0
	}
	rule := policy.Spec.Egress[2]
	var blocks []string
	for _, peer := range rule.To {
		blocks = append(blocks, peer.IPBlock.CIDR)
	}
	return strings.Join(blocks, " "), rule.Ports[0].Port.IntValue()
}

func networkPolicy(t *testing.T, h helm, values string) networkingv1.NetworkPolicy {
	t.Helper()
	return find[networkingv1.NetworkPolicy](t, h.mustRender(t, overlay(t, server, values)), "NetworkPolicy", "velero")
}

// reaches says whether the policy lets a connection to the address out, pods aside.
func reaches(t *testing.T, policy networkingv1.NetworkPolicy, address string, port int32) bool {
	t.Helper()
	for _, rule := range policy.Spec.Egress {
		open := len(rule.Ports) == 0
		for _, p := range rule.Ports {
			open = open || (*p.Protocol == corev1.ProtocolTCP && p.Port.IntVal == port)
		}
		for _, peer := range rule.To {
			if open && peer.IPBlock != nil && within(t, *peer.IPBlock, netip.MustParseAddr(address)) {
				return true
			}
		}
	}
	return false
}

func within(t *testing.T, block networkingv1.IPBlock, address netip.Addr) bool {
	t.Helper()
	prefix := netip.MustParsePrefix(block.CIDR)
	excepted := false
	for _, except := range block.Except {
		e := netip.MustParsePrefix(except)
		if !prefix.Overlaps(e) || e.Bits() <= prefix.Bits() || e.String() != except {
			t.Errorf("%s is no canonical part of %s", except, prefix)
		}
		excepted = excepted || e.Contains(address)
	}
	return prefix.Contains(address) && !excepted
}

func TestNetworkPolicyKeepsVeleroFromTheInside(t *testing.T) {
	h := newHelm(t)
	blocked := []string{
		// The metadata services of AWS, Azure, Google, OpenStack; of Azure's fabric; Alibaba; Oracle.
		"169.254.169.254", "168.63.129.16", "100.100.100.200", "192.0.0.192",
		"fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fe80::a9fe:a9fe",
		// The same through NAT64.
		"64:ff9b::a9fe:a9fe", "64:ff9b::a83f:8110", "64:ff9b::6464:64c8", "64:ff9b::c000:c0", "64:ff9b:1::a9fe:a9fe",
		// Task credentials of ECS and EKS, pods, services and nodes.
		"169.254.170.2", "169.254.170.23", "fd00:ec2::23", "10.96.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "64:ff9b::a60:1", "64:ff9b::ac10:1",
	}
	allowed := []string{"1.1.1.1", "169.253.255.255", "172.32.0.1", "192.0.1.1", "2606:4700::1111", "64:ff9b::101:101", "64:ff9b::a9fd:1"}
	policy := networkPolicy(t, h, "{}")
	for _, port := range []int32{80, 443} {
		for _, address := range blocked {
			if reaches(t, policy, address, port) {
				t.Errorf("%s:%d can be reached", address, port)
			}
		}
		for _, address := range allowed {
			if !reaches(t, policy, address, port) {
				t.Errorf("%s:%d cannot be reached", address, port)
			}
		}
	}
	if in := policy.Spec.Ingress; len(in) != 1 || len(in[0].Ports) != 1 || in[0].Ports[0].Port.IntValue() != 8085 {
		t.Errorf("ingress %+v, want the metrics port only", in)
	}
}

// A control plane or a proxy with an internal name may be anywhere inside, but not where metadata is.
func TestMetadataIsBlockedWithAControlPlaneInside(t *testing.T) {
	h := newHelm(t)
	policy := networkPolicy(t, h, kubeconfigValue(`server: "https://api.ns.svc:80"`)+"\nproxy: {http: 'http://proxy:80'}")
	for _, address := range []string{"169.254.169.254", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254", "fd00:c1::a9fe:a9fe", "fe80::a9fe:a9fe", "64:ff9b::a9fe:a9fe"} {
		if reaches(t, policy, address, 80) {
			t.Errorf("%s can be reached", address)
		}
	}
	if !reaches(t, policy, "10.96.0.1", 80) || reaches(t, policy, "10.96.0.1", 443) {
		t.Error("inside, the control plane's port must be open, and no other")
	}
}

func TestBlockedRangesOfTheSiteAreBlockedThroughNAT64(t *testing.T) {
	h := newHelm(t)
	policy := networkPolicy(t, h, "networkPolicy: {blockedCIDRs: [8.8.8.0/24, '2001:db8::/32', 255.255.255.255/32]}")
	for address, want := range map[string]bool{
		"8.8.8.8": false, "64:ff9b::808:808": false, "8.8.4.4": true, "64:ff9b::808:404": true, "2001:db8::1": false,
		"64:ff9b::ffff:ffff": false, "255.255.255.255": false, "10.0.0.1": true,
	} {
		if got := reaches(t, policy, address, 443); got != want {
			t.Errorf("%s: reachable %v", address, got)
		}
	}
	none := networkPolicy(t, h, "networkPolicy: {blockedCIDRs: []}")
	if !reaches(t, none, "169.254.169.254", 80) || !reaches(t, none, "64:ff9b::a9fe:a9fe", 80) {
		t.Error("without blocked ranges something is blocked")
	}
}

// An empty list of peers or ports means all of them.
func TestNoDNSIsNotEverything(t *testing.T) {
	h := newHelm(t)
	for _, values := range []string{"networkPolicy: {dns: {to: []}}", "networkPolicy: {dns: {ports: []}}", "networkPolicy: {dns: {to: null}}", "networkPolicy: {dns: {ports: null}}"} {
		for _, rule := range networkPolicy(t, h, values).Spec.Egress {
			if len(rule.To) != 2 || rule.To[0].IPBlock == nil {
				t.Errorf("%s: rule %+v", values, rule)
			}
		}
	}
}

func TestNetworkPolicyLetsVeleroReachItsProxy(t *testing.T) {
	h := newHelm(t)
	for proxy, want := range map[string]struct {
		address string
		port    int32
	}{
		"http: 'http://10.1.2.3:3128'":              {"10.1.2.3", 3128},
		"https: 'http://user:p%40ss@10.1.2.3:3128'": {"10.1.2.3", 3128},
		"https: 'https://10.1.2.3/'":                {"10.1.2.3", 443},
		"http: '10.1.2.3:8080'":                     {"10.1.2.3", 8080},
		"http: 'http://[fd00::7]:3128'":             {"fd00::7", 3128},
		"https: 'socks5://proxy'":                   {"10.9.9.9", 1080},
		"https: 'http://squid.proxy.svc:3128'":      {"10.9.9.9", 3128},
	} {
		policy := networkPolicy(t, h, "proxy: {"+proxy+"}")
		if !reaches(t, policy, want.address, want.port) || reaches(t, policy, want.address, want.port+1) || reaches(t, policy, "192.168.7.7", want.port+1) {
			t.Errorf("%s: %+v", proxy, policy.Spec.Egress)
		}
	}
	for _, proxy := range []string{"http://a:b@c@10.1.2.3", "://", "@", "http://%zz", "http://a b:3", "http://proxy.example.com:3128", "::::"} {
		if rules := networkPolicy(t, h, "proxy: {http: '"+proxy+"'}").Spec.Egress; len(rules) != 2 {
			t.Errorf("%s: rules %+v", proxy, rules[2:])
		}
	}
}

func TestControlPlaneInsideIsNotReachedThroughTheProxy(t *testing.T) {
	h := newHelm(t)
	for name, test := range map[string]struct{ cluster, proxy, want string }{
		"a private address":  {`server: "https://10.1.2.3:6443"`, "http: 'http://p:1'", "10.1.2.3"},
		"IPv6":               {`server: "https://[fd00::1]:6443"`, "https: 'http://p:1', noProxy: 'a,.b'", "a,.b,fd00::1"},
		"an internal name":   {`server: "https://api.ns.svc"`, "http: 'http://p:1', noProxy: a", "a,api.ns.svc"},
		"listed already":     {`server: "https://10.1.2.3:6443"`, "http: 'http://p:1', noProxy: '10.1.2.3,a'", "10.1.2.3,a"},
		"a public name":      {`server: "https://mcp.example.com"`, "http: 'http://p:1', noProxy: a", "a"},
		"a public address":   {`server: "https://8.8.8.8"`, "http: 'http://p:1'", ""},
		"a proxy of its own": {`server: "https://10.1.2.3", proxy-url: "http://q:2"`, "http: 'http://p:1'", ""},
		"no proxy":           {`server: "https://10.1.2.3"`, "noProxy: a", "a"},
	} {
		for _, o := range h.mustRender(t, overlay(t, server, kubeconfigValue(test.cluster)+"\nproxy: {"+test.proxy+"}")) {
			if strings.HasPrefix(o.name(), "velero-proxy-") {
				if diff := cmp.Diff(test.want, string(decode[corev1.Secret](t, o).Data["NO_PROXY"])); diff != "" {
					t.Errorf("%s: NO_PROXY (-want +got):\n%s", name, diff)
				}
			}
		}
	}
}
