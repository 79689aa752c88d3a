import numpy as np, gzip, csv, json
from scipy.special import expit
R='/work/shared/reference/'; P='/work/shared/paper_models/'
def read(p):
    op=gzip.open if p.endswith('.gz') else open
    with op(p,'rt') as f:
        r=list(csv.reader(f)); h=r[0]; a=np.array(r[1:],dtype=float)
    return {k:a[:,i] for i,k in enumerate(h)}, h
class Logit:
    def __init__(s,X,y,sd): s.X,s.y,s.sd=X,y,sd; s.n,s.d=X.shape
    def grads(s,t): return (s.y-expit(s.X@t))[:,None]*s.X
    def gprior(s,t): return -t/s.sd**2
    def out(s,T): return T
def adult():
    c,_=read(R+'datasets/adult_income/data.csv.gz')
    dec=(c['age']-40)/10
    X=np.column_stack([np.ones_like(dec),dec,dec**2,(c['education_num']-10)/3,(c['hours_per_week']-40)/10,c['female'],c['married'],np.log1p(c['capital_gain'])/5,np.log1p(c['capital_loss'])/5])
    m=Logit(X,c['income_gt_50k'],np.array([5]+[2.5]*8)); ref,h=read(R+'datasets/adult_income/reference_draws.csv'); m.ref=np.column_stack([ref[k] for k in h if k not in('chain','draw','lp__','iteration')]); m.h=h; return m
class StudentT:
    def __init__(s,X,y): s.X,s.y=X,y; s.n=len(y); s.d=X.shape[1]+2
    def grads(s,t):
        from scipy.special import digamma
        b=t[:-2]; sig=np.exp(np.clip(t[-2],-20,20)); v=np.exp(np.clip(t[-1],-20,20)); nu=2+v
        z=(s.y-s.X@b)/sig; w=(nu+1)/(nu+z*z)
        G=np.empty((s.n,s.d)); G[:,:-2]=(w*z/sig)[:,None]*s.X
        G[:,-2]=-1+w*z*z
        dnu=.5*(digamma((nu+1)/2)-digamma(nu/2)-1/nu-np.log1p(z*z/nu)+w*z*z/nu)
        G[:,-1]=dnu*v; return G
    def gprior(s,t):
        g=np.empty(s.d); g[0]=-(t[0]-6)/4; g[1:-2]=-t[1:-2]; g[-2]=1-np.exp(2*np.clip(t[-2],-20,20)); g[-1]=1-.1*np.exp(np.clip(t[-1],-20,20)); return g
    def out(s,T): O=T.copy(); O[:,-2]=np.exp(T[:,-2]); O[:,-1]=2+np.exp(T[:,-1]); return O
def cps():
    c,_=read(R+'datasets/cps1988_wages/data.csv')
    e=(c['experience']-18)/13
    ed=c['education']; X=np.column_stack([np.ones_like(e),(ed-13)/3,e,e**2,c['afam'],c['smsa'],c['parttime'],c['region']==2,c['region']==3,c['region']==4]).astype(float)
    m=StudentT(X,np.log(c['wage'])); m.c0=np.array([6.]+[0]*9+[-.4,1.9]); ref,h=read(R+'datasets/cps1988_wages/reference_draws.csv'); m.ref=np.column_stack([ref[k] for k in h if k not in('chain','draw','lp__','iteration')]); m.h=h; return m
class Banana:
    def __init__(s,x,a,s02,v): s.x=x; s.n=len(x); s.d=2; s.a=a; s.s02=s02; s.v=v
    def grads(s,t):
        z=np.array([t[0],t[1]+s.a*t[0]**2]); r=(s.x-z)/s.v
        G=np.empty((s.n,2)); G[:,0]=r[:,0]+r[:,1]*2*s.a*t[0]; G[:,1]=r[:,1]; return G
    def gprior(s,t):
        z=np.array([t[0],t[1]+s.a*t[0]**2]); q=-z/s.s02; return np.array([q[0]+q[1]*2*s.a*t[0],q[1]])
    def out(s,T): return T
def banana():
    c,h=read(P+'paper_banana_d2.csv.gz'); j=json.load(open(P+'paper_banana_d2.json'))['constants']
    m=Banana(np.column_stack([c[k] for k in h]),j['a'],j['sigma0_sq'],np.array(j['v'])); r,h=read(P+'paper_banana_d2.ref.csv'); m.ref=np.column_stack([r[k] for k in h]); return m
class Gauss:
    def __init__(s,x,cov): s.x=x; s.n,s.d=x.shape; s.Q=np.linalg.inv(cov)
    def grads(s,t): return (s.x-t)@s.Q
    def gprior(s,t): return -t/s.s02
    def out(s,T): return T
def gauss():
    c,h=read(P+'paper_gauss_d10.csv.gz'); j=json.load(open(P+'paper_gauss_d10.json')); k=j['constants']; 
    m=Gauss(np.column_stack([c[q] for q in h]),np.array(k['cov'] if 'cov' in k else k['Sigma'])); m.s02=k.get('sigma0_sq',1e6) ; r,h=read(P+'paper_gauss_d10.ref.csv'); m.ref=np.column_stack([r[q] for q in h]); return m

def wells():
    d=R+'posteriordb/wells_data-wells_dae_inter_model/'; c,_=read(d+'data.csv'); k=json.load(open(d+'constants.json'))
    D=(c['dist']-k['mean_dist'])/100; a=c['arsenic']-k['mean_arsenic']; e=(c['educ']-k['mean_educ'])/4
    X=np.column_stack([np.ones_like(D),D,a,e,D*a,D*e,a*e]); m=Logit(X,c['switched'],np.full(7,1e6)); r,h=read(d+'reference_draws.csv'); h=[q for q in h if q not in('chain','draw','lp__','iteration')]; m.ref=np.column_stack([r[q] for q in h]); m.h=h; return m
