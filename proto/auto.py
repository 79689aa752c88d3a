import numpy as np, sys, time
from models import *
from scipy.stats import norm
from scipy.optimize import brentq
def mu_of(eps,delta):
    def d(m):
        g=np.sqrt(2*m); return norm.cdf(g/2-eps/g)-np.exp(eps+norm.logcdf(-g/2-eps/g))
    return brentq(lambda l:d(np.exp(l))-delta,np.log(1e-8),np.log(1e3)) and np.exp(brentq(lambda l:d(np.exp(l))-delta,np.log(1e-8),np.log(1e3)))
class V:
    def __init__(s,m,mu,rng): s.m,s.mu,s.rng,s.spent=m,mu,rng,0.
    def tau(s,cost): s.spent+=cost; return 1/np.sqrt(2*cost)
    def g(s,c,A,u):
        t=c+A@u; return s.m.grads(t)@A, A.T@s.m.gprior(t)
    def hist(s,c,A,u,cost,cen=0.):
        g,_=s.g(c,A,u); g=g-cen; nn=np.sqrt((g*g).sum(1)); nn=nn[np.isfinite(nn)]
        b=np.clip(np.floor(2*np.log2(np.maximum(nn,1e-300))),-120,120).astype(int)+120
        h=np.bincount(b,minlength=241)+s.rng.normal(0,np.sqrt(2)*s.tau(cost),241)
        return h
    def quant(s,h,q,cost):
        thr=4*np.sqrt(2)/np.sqrt(2*cost); h=np.where(h>thr,h,0); cdf=np.cumsum(h)/max(h.sum(),1)
        k=np.searchsorted(cdf,q); return 2**((k-120+1)/2)
    def grad(s,c,A,u,b,cost,cen=0.):
        g,p=s.g(c,A,u); g=g-cen; nn=np.sqrt((g*g).sum(1)); w=np.minimum(1,b/np.maximum(nn,1e-300)); w[~np.isfinite(w)]=0
        return w@g+s.rng.normal(0,2*b*s.tau(cost),len(u)), p, (nn>b).mean()
    def opg(s,c,A,u,b,cost,cen=0.):
        g,p=s.g(c,A,u); g=g-cen; nn=np.sqrt((g*g).sum(1)); g=g*np.minimum(1,b/np.maximum(nn,1e-300))[:,None]
        F=g.T@g; d=len(u); sg=2*b*b*s.tau(cost)  # substitute: |gg^T-hh^T|_F <= sqrt2 b^2 really
        E=s.rng.normal(0,sg/np.sqrt(2)*1,(d,d)); E=np.triu(E)+np.triu(E,1).T; 
        return F+E, sg/np.sqrt(2)
def start(v,m,verbose=False,share=0.3,R=6):
    d,n=m.d,m.n; B=share*v.mu
    c=getattr(m,'c0',np.zeros(d)).astype(float).copy(); A=np.eye(d); O=np.zeros(d)
    best=None; radius=np.inf; P=None
    for r in range(R):
        final=r>=R-2
        wt=B*(3. if final else 1.)/(R+4)
        b0=v.quant(v.hist(c,A,O,.04*wt),.95,.04*wt)
        G0,p,cl0=v.grad(c,A,O,b0,.15*wt); cen=G0/n
        b=v.quant(v.hist(c,A,O,.04*wt,cen),.98,.04*wt)
        F,sg=v.opg(c,A,O,b,.35*wt,cen); G1,_,cl=v.grad(c,A,O,b,.35*wt,cen); G=G0+G1
        C=F-np.outer(G1,G1)/n; w,U=np.linalg.eigh((C+C.T)/2); floor=2*sg*np.sqrt(d); w0=w.copy(); w=np.maximum(w,floor)
        dec=np.sqrt((((U.T@(G+p))**2)/w).sum())
        s=U@((U.T@(G+p))/w); A2=U/np.sqrt(w)
        # LM: a step that is long beyond what one round can know is cut in the weak directions
        A=A@A2; step=A@(np.sqrt(w)*(U.T@s))
        c=c+step
        if verbose: print(' round',r,'c',np.round(c,3)[:7],'floor/w',np.round(floor/w0,3)[:4],'b0,b %.3g %.3g'%(b0,b),'clip',round(cl,3),'dec %.2f'%dec)
    h=v.hist(c,A,O,.04*wt); b=v.quant(h,KQ,.04*wt)
    return c,A,b
KQ=.998
def mmd(x,y,rng):
    i=rng.integers(0,len(x),500); j=rng.integers(0,len(y),500); s=np.median(np.linalg.norm(x[i]-y[j],axis=1))
    from scipy.spatial.distance import cdist
    k=lambda a,b:np.exp(-cdist(a,b,'sqeuclidean')/(2*s*s)); n,m_=len(x),len(y)
    kx=k(x,x);ky=k(y,y); return np.sqrt(abs((kx.sum()-n)/n/(n-1)+(ky.sum()-m_)/m_/(m_-1)-2*k(x,y).mean()))
def langevin(v,m,c,A,b,mu,chains,h,gam,rng,kmax=1500,disp=1.0,q=None):
    d,n=m.d,m.n
    # OBABO with one noisy kick: p <- a p ; kick h(G+noise) with var h^2 s^2 = 1-a^2 ; then free flight h
    a=np.exp(-gam*h); s2=(1-a*a)/h**2; tau=np.sqrt(s2)/(2*b); k=int(mu*2*tau**2/chains); k=min(k,kmax)
    if k<1: return None
    out=[];cl=[];per=1/(2*tau**2)
    for ch in range(chains):
        u=disp*rng.normal(size=d); p=rng.normal(size=d)
        for i in range(k):
            u=u+h/2*p
            G,pr,cc=v.grad(c,A,u,b,per); cl.append(cc)   # noise s on each coordinate
            g=G+pr
            # symmetric: half friction, kick, half friction
            p=np.sqrt(a)*(np.sqrt(a)*p+h*g*np.sqrt(1.))*1.0 if False else a*p+h*g*(1+a)/2
            u=u+h/2*p
            out.append(c+A@u)
    return m.out(np.array(out)),k,np.mean(cl)
if __name__=='__main__':
    name=sys.argv[1]; m=globals()[name](); reps=int(sys.argv[2]) if len(sys.argv)>2 else 1
    for eps in [1,3,10]:
        for r in range(reps):
            rng=np.random.default_rng(r+100); v=V(m,mu_of(eps,1e-6),rng); t0=time.time()
            c,A,b=start(v,m,verbose=(r==0)); sp=v.spent
            ref=m.ref[:1000]; q=m.ref
            L=m.out((c[:,None]+A@rng.normal(size=(m.d,1000))).T)
            mm0=mmd(L,ref,rng); z=(L.mean(0)-q.mean(0))/q.std(0); sr=L.std(0)/q.std(0)
            res=langevin(v,m,c,A,b,v.mu-sp,4,float(sys.argv[3]) if len(sys.argv)>3 else .2,2.,rng,kmax=400)
            if res is None: print(name,eps,'laplace mmd',round(mm0,3)); continue
            o,k,cl=res; z2=(o.mean(0)-q.mean(0))/q.std(0); sr2=o.std(0)/q.std(0)
            print(name,eps,'spent',round(sp/v.mu,2),'laplace mmd %.3f meanerr %.2f sd %.2f-%.2f'%(mm0,np.abs(z).mean(),sr.min(),sr.max()),'| k',k,'t',round(k*.2,1),'mmd %.3f meanerr %.2f sd %.2f-%.2f clip %.4f'%(mmd(o[::max(1,len(o)//1000)],ref,rng),np.abs(z2).mean(),sr2.min(),sr2.max(),cl),round(time.time()-t0,1),'s total spent',round(v.spent/v.mu,3),flush=True)
