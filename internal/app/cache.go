package app

import (
	"sync/atomic"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
)

// newPlatformCache builds the cache of a platform that may lack Flux: to build one asks for the scope of each configured kind, and fails when a
// kind is not served.
func newPlatformCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	mapper := &scopes{RESTMapper: options.Mapper}
	options.Mapper = mapper
	built, err := cache.New(config, options)
	// From here on the cache is to know whether it can watch a kind.
	mapper.built.Store(true)
	return built, err
}

// scopes knows until the cache is built that what is not served yet is namespaced, as are all kinds that platformCache lists.
type scopes struct {
	apimeta.RESTMapper
	built atomic.Bool
}

// RESTMapping implements meta.RESTMapper.
func (s *scopes) RESTMapping(kind schema.GroupKind, versions ...string) (*apimeta.RESTMapping, error) {
	mapping, err := s.RESTMapper.RESTMapping(kind, versions...)
	if apimeta.IsNoMatchError(err) && !s.built.Load() {
		return &apimeta.RESTMapping{Scope: apimeta.RESTScopeNamespace}, nil
	}
	return mapping, err
}
